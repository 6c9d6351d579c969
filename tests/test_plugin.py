"""A package of someone else's adds to Piste by being installed: examples/plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import piste

EXAMPLE = Path(__file__).parent.parent / "examples" / "plugin"

METHOD = """
import piste
classifier = piste.load(lambda texts: [text.count("good") for text in texts])
e = piste.explain(classifier, "A good film.", method="plugin_method", scale=2.0)
assert e.method == "plugin_method" and e.settings["scale"] == 2.0
assert e.units[int(e.scores["attribution"].argmax())].text == "good"
"""
METRIC = """
import piste
from piste.evaluation import judge, metrics
(metric,) = metrics.make("plugin_metric")
classifier = piste.load(lambda texts: [3 * text.count("good") for text in texts])
e = piste.explain(classifier, "A good film.", method="occlusion")
(row,) = judge(classifier, e, metric)
assert row.figures["top_loss"] == 3.0, row.figures
"""
CLASSIFIER = """
import piste
from piste_plugin import PluginSource
classifier = piste.load(PluginSource({"good": 2.0, "bad": -2.0}))
assert classifier.subject("A good film").ask([[0, 1, 2], [0, 2]]).ravel().tolist() == [2.0, 0.0]
"""
VIEW = """
import sys
from pathlib import Path
import piste
from piste.views import VIEWS
assert "plot_plugin_view" in VIEWS and "piste_plugin" not in sys.modules
e = piste.explain(piste.load(lambda texts: [text.count("good") for text in texts]), "A good film.")
figure = e.plot("plugin_view", "waterfall.png")
assert Path("waterfall.png").read_bytes().startswith(b"\\x89PNG")
labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
assert labels == ["A", "good", "film", "."]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed by pip into a folder of its own; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("plugin")
    source, target = folder / "source", folder / "site"
    shutil.copytree(EXAMPLE, source)  # setuptools leaves a build folder behind
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", target, source], check=True, timeout=300)
    return target


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(METHOD, id="method"),
        pytest.param(METRIC, id="metric"),
        pytest.param(CLASSIFIER, id="classifier"),
        pytest.param(VIEW, id="view"),
    ],
)
def test_what_is_installed_is_found(code: str, installed: Path, tmp_path: Path) -> None:
    sources = Path(piste.__file__).parent.parent
    paths = os.pathsep.join(map(str, (installed, sources)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
