"""The site's sources: the pages of docs, those beside the README, and one page per package."""

from __future__ import annotations

import inspect
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import piste

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "piste"

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages of the repository's root and where they stand on the site."""

CHAPTERS = {
    "Using Piste": "explaining units classifiers images attention concepts corpus page gallery",
    "Language models": "language-models context served",
    "Background": "slalom methods fidelity evaluation defaults performance reproduction",
    "Results": "results/README results/frontier results/panel results/eggen results/concepts"
    " results/images results/architectures",
    "Extending": "extending contributing architecture changelog",
}
"""The contents. A page that no chapter names still belongs to the site, found by its links."""

MODULES_ALONE = "piste"
"""The page on modules that belong to no package."""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def write_sources(folder: Path) -> None:
    """Write everything Sphinx reads."""
    shutil.copytree(ROOT / "docs", folder)
    places = {page.relative_to(ROOT): page.relative_to(ROOT / "docs") for page in docs_pages()}
    places |= {Path(page): Path(place) for page, place in PAGES.items()}
    for page, place in places.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        text = outside_code(text, partial(relink, page=page, places=places))
        (folder / place).write_text(text, encoding="utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as index:
        index.write(contents(folder))
    (folder / "api").mkdir()
    for title, modules in packages():
        text = public_names() if title == MODULES_ALONE else ""
        page = folder / "api" / f"{title}.rst"
        page.write_text(api_page(title, modules, text), encoding="utf-8")


def docs_pages() -> list[Path]:
    """All pages of docs."""
    return sorted((ROOT / "docs").rglob("*.md"))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    r"""Change a page but for its code blocks.

    >>> outside_code("a\n```python\na\n```\na", str.upper)
    'A\n```python\na\n```\nA'
    """
    pieces = FENCED.split(text)
    return "".join(piece if number % 2 else change(piece) for number, piece in enumerate(pieces))


def relink(text: str, page: Path, places: dict[Path, Path]) -> str:
    """Links of a page, as they are on the site.

    A link to a file of the repository that is not on the site becomes its name.

    >>> relink("[a](docs/a.md#b)", Path("README.md"), {Path("docs/a.md"): Path("a.md"),
    ...     Path("README.md"): Path("index.md")})
    '[a](a.md#b)'
    """

    def place(match: re.Match[str]) -> str:
        image, words, address = match.groups()
        path, mark, anchor = address.partition("#")
        if not path or ":" in path:
            return match[0]
        target = Path(os.path.normpath(page.parent / path))
        if not (ROOT / target).exists() and target not in places:
            return match[0]  # Sphinx reports it
        found = places.get(target)
        if found is None and target.parts[0] == "docs" and (ROOT / target).is_file():
            found = target.relative_to("docs")  # an image
        if found is None:
            return words if words.startswith("`") else f"{words} (`{target.as_posix()}`)"
        return f"{image}[{words}]({os.path.relpath(found, places[page].parent)}{mark}{anchor})"

    return LINK.sub(place, text)


def contents(folder: Path) -> str:
    """The chapters for the side of every page."""
    parts = []
    named: set[str] = set()
    for title, pages in CHAPTERS.items():
        there = [page for page in pages.split() if (folder / f"{page}.md").exists()]
        named |= set(there)
        parts.append(_toctree(title, there))
    every = {page.relative_to(folder).with_suffix("").as_posix() for page in folder.rglob("*.md")}
    rest = sorted(every - named - {"index"})
    if rest:
        parts.append(_toctree("Details", rest))
    parts.append(_toctree("Reference", [f"api/{title}" for title, _ in packages()]))
    return "\n" + "\n".join(parts)


def _toctree(title: str, pages: list[str]) -> str:
    lines = ["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""]
    return "\n".join(lines)


def packages() -> Iterator[tuple[str, list[str]]]:
    """The packages, and the modules whose docstrings make up the page of each."""
    alone = sorted(file.stem for file in PACKAGE.glob("*.py") if not file.stem.startswith("_"))
    yield MODULES_ALONE, [f"piste.{name}" for name in alone]
    for package in sorted(PACKAGE.glob("*/__init__.py")):
        files = sorted(package.parent.rglob("*.py"))
        names = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files]
        names = [name.removesuffix(".__init__") for name in names if "__main__" not in name]
        yield f"piste.{package.parent.name}", sorted(names)


def public_names() -> str:
    """What ``piste`` itself offers: functions in full, classes by a link to their module."""
    offered = [getattr(piste, name) for name in piste.__all__]
    functions = [one.__name__ for one in offered if inspect.isfunction(one)]
    classes = [f"{one.__module__}.{one.__name__}" for one in offered if inspect.isclass(one)]
    parts = ["Functions:\n", *(f".. autofunction:: piste.{name}\n" for name in functions)]
    parts += ["Classes:\n", "\n".join(f"- :class:`~{name}`" for name in classes), ""]
    return "\n".join(parts)


def api_page(title: str, modules: list[str], before: str = "") -> str:
    """A page that shows the docstrings of modules, which are reStructuredText.

    >>> print(api_page("piste.zoo", ["piste.zoo.clothes"]))
    piste.zoo
    =========
    <BLANKLINE>
    <BLANKLINE>
    piste.zoo.clothes
    -----------------
    <BLANKLINE>
    .. automodule:: piste.zoo.clothes
    <BLANKLINE>
    """
    parts = [f"{title}\n{'=' * len(title)}\n", before]
    parts += [f"{name}\n{'-' * len(name)}\n\n.. automodule:: {name}\n" for name in modules]
    return "\n".join(parts)
