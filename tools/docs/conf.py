"""How Sphinx builds the site."""

from __future__ import annotations

import re
from importlib.metadata import version as installed_version
from typing import Any

project = "Piste"
author = copyright = "The Piste developers"
version = release = installed_version("piste")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"Piste {version}"
html_copy_source = html_show_sourcelink = False

myst_heading_anchors = 4
suppress_warnings = [
    "myst.header",  # the studies write their findings with headings of level 3
    "ref.python",  # annotations are not qualified, and two classes may share a name
]
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "show-inheritance": True,
    "ignore-module-all": True,  # a package's exports are documented where they are defined
    "exclude-members": "set",  # which matplotlib writes for its figures
}
autodoc_preserve_defaults = True
toc_object_entries = False  # modules only: the list beside a page stays short, and is built fast
add_module_names = False
python_use_unqualified_type_names = True

LITERAL = re.compile(r"(``.*?``|:\w+:`[^`]*`)")


def escape(line: str) -> str:
    r"""Signs of formulas that reStructuredText would read as its own: ``|x|`` and ``plot_…``.

    >>> print(escape("|x| and ``|y|``"))
    \|x\| and ``|y|``
    """
    if line.lstrip().startswith((">>>", "...")):
        return line
    pieces = LITERAL.split(line)
    pieces[::2] = [re.sub(r'\||(?<=\w)_(?=[…"\s]|$)', r"\\\g<0>", piece) for piece in pieces[::2]]
    return "".join(pieces)


def escape_docstring(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escape every line but those of examples and indented formulas."""
    example = literal = False
    for number, line in enumerate(lines):
        if not line.strip():
            example = False
            continue
        if literal and not line.startswith(" "):
            literal = False
        example = example or line.lstrip().startswith(">>>")
        if not example and not literal:
            lines[number] = escape(line)
        if line.rstrip().endswith("::"):
            literal = True


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", escape_docstring)
