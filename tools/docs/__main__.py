"""Writes the site's sources to build/docs-source and builds build/docs from them.

Warnings are errors.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from tools.docs.sources import ROOT, write_sources


def main() -> int:
    """Build the site; the exit code is Sphinx's."""
    sources, site = ROOT / "build" / "docs-source", ROOT / "build" / "docs"
    for folder in (sources, site):
        shutil.rmtree(folder, ignore_errors=True)
    write_sources(sources)
    configuration = str(Path(__file__).parent)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto"]
    code = build_main([*options, "-b", "html", "-c", configuration, str(sources), str(site)])
    if code == 0:
        sys.stdout.write(f"The site is in {site}: open {site / 'index.html'}.\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
