"""The wheel holds the package and nothing else, and works where the repository is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LEFT_OUT = (".*", "build", "dist", "docs", "*.egg-info", "__pycache__")

pytestmark = pytest.mark.slow

EXPLAIN = """
from pathlib import Path
import piste
assert "site-packages" in piste.__file__, piste.__file__
e = piste.explain(piste.load("piste:reviews"), "A slow start, but a wonderful ending.", samples=60)
assert e.output.label == "positive"
assert "<script" in e.to_html("report.html")
assert piste.read(Path("e.json")).method == "slalom"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as ``make dist`` does it, from a copy: building writes into the sources."""
    folder = tmp_path_factory.mktemp("dist")
    copy = folder / "repository"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, copy]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    (built,) = folder.glob("*.whl")
    assert len(list(folder.glob("*.tar.gz"))) == 1
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands of an environment are that has the wheel, and our dependencies by path."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    install = [sys.executable, "-m", "pip", "--python", folder, "install", "--quiet"]
    command = [*install, "--no-deps", "--no-index", wheel]
    subprocess.run(command, check=True, timeout=600)
    # A path file is read after the folder it lies in, so the installed wheel comes first.
    packages = Path(pytest.__file__).parent.parent
    (Path(paths["purelib"]) / "dependencies.pth").write_text(f"{packages}\n", encoding="utf-8")
    return Path(paths["scripts"])


def run(command: list[str | Path], folder: Path) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_holds_the_package_only(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"piste"}
    assert not [name for name in names if "/tests/" in name or name.endswith(".pyc")]
    sources = {
        file.relative_to(ROOT / "src").as_posix()
        for file in (ROOT / "src" / "piste").rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    assert sources <= set(names)
    for part in (
        "piste/py.typed",
        "piste/show/html/assets/piste.js",
        "piste/concepts/words/praise.txt",
        "piste/zoo/reviews/model.safetensors",
        "piste/zoo/reviews_gpt/tokenizer.json",
        "piste/zoo/fashion/preprocessor_config.json",
    ):
        assert part in names


def test_commands_run_from_the_wheel(scripts: Path, tmp_path: Path) -> None:
    assert run([scripts / "piste", "--version"], tmp_path).startswith("piste 0.")
    assert "piste:fashion" in run([scripts / "piste", "models"], tmp_path)


def test_an_explanation_from_the_wheel(scripts: Path, tmp_path: Path) -> None:
    text = "A slow start, but a wonderful ending."
    stored = run([scripts / "piste", "explain", text, "--samples", "60", "--json"], tmp_path)
    (tmp_path / "e.json").write_text(stored, encoding="utf-8")
    run([scripts / "python", "-c", EXPLAIN], tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 10_000
