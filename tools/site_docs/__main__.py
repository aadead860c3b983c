"""Builds the site: `python -m tools.site_docs build/site`."""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from sphinx.cmd.build import main as sphinx

from tools.site_docs import entries, policies
from tools.site_docs.contents import ADMINISTRATORS, CONTRIBUTORS, REFERENCE, USERS
from tools.site_docs.sources import Sources, toctree

ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    '<th class="head text-right"><p></p></th>': '<td class="head text-right"></td>',
    "<pre>": '<pre tabindex="0">',
}
_TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
_HEAD = re.compile(r'<t[hd] class="head[^>]*>(.*?)</t[hd]>', re.DOTALL)
# Sphinx writes a placeholder page, which navigation and search need. The real page then replaces the placeholder.
PLAYGROUND = "playground/index"
LEADS_TO_IT = (
    f"\nOr try it: the [playground]({PLAYGROUND}.md) shows the verdict on a job while you type, in your browser.\n"
)
SCORER = Path(__file__).with_name("scorer.js")
PLAY = "# Playground\n\nThe page shows the verdict on a job while you type. It runs only in your browser.\n"


def main() -> int:
    """Build the site. Returns Sphinx's exit code, which is not 0 for a broken link."""
    parser = argparse.ArgumentParser(prog="python -m tools.site_docs", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--playground",
        type=Path,
        help="The page that `make page-static` writes. Without it, the site has no playground.",
    )
    arguments = parser.parse_args()
    folder, playground = arguments.folder, arguments.playground
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        instead = {f"{policies.FOLDER}/{name}.yaml": f"policies/{name}.md" for name in policies.NAMES}
        sources = Sources(Path(temporary) / "sources", instead)
        for path, text in (*entries.pages(), *policies.pages()):
            sources.page(path, text)
        sources.write()
        if playground:
            sources.put(f"{PLAYGROUND}.md", PLAY)
            _append(sources, "index.md", LEADS_TO_IT)
        _append(sources, "index.md", _navigation((PLAYGROUND, *USERS) if playground else USERS))
        _append(sources, "policies.md", toctree(f"/policies/{name}" for name in policies.NAMES))
        for kind in entries.REFERENCE:
            _append(sources, f"reference/{kind}s.md", toctree(f"/{name}" for name in entries.names(kind)))
        scorer = Path(temporary) / "scorer.js"
        scorer.write_text(
            f"const READERS = {json.dumps([*USERS, *ADMINISTRATORS])};\n{SCORER.read_text('utf-8')}", "utf-8"
        )
        options = ["-W", "--keep-going", "-q", "-n", "-c", str(Path(__file__).parent)]
        failed: int = sphinx([*options, "-D", f"html_search_scorer={scorer}", str(sources.folder), str(folder)])
    shutil.rmtree(folder / ".doctrees", ignore_errors=True)
    for page in folder.rglob("*.html"):
        page.write_text(_with_accessibility(page.read_text(encoding="utf-8")), encoding="utf-8")
    # After a search, Sphinx highlights the words in the page that the reader opens. No option of Sphinx turns this off.
    script = folder / "_static" / "sphinx_highlight.js"
    script.write_text(script.read_text("utf-8").replace("ENABLED = true", "ENABLED = false"), "utf-8")
    if playground:
        shutil.copytree(playground, (folder / PLAYGROUND).parent, dirs_exist_ok=True)
        data = (folder / PLAYGROUND).with_name("data.json")
        data.write_text(json.dumps(json.loads(data.read_text("utf-8")) | {"documentation": "../index.html"}), "utf-8")
    return failed


def _with_accessibility(html: str) -> str:
    for old, new in ACCESSIBLE.items():
        html = html.replace(old, new)
    return _TABLE.sub(_labelled, html)


def _labelled(table: re.Match[str]) -> str:
    """Add the name of the column to each cell. site.css shows the names on narrow screens."""
    names = cycle([re.sub("<.*?>", "", name) for name in _HEAD.findall(table[0])] or [""])
    return re.sub(r'<td(?! class="head)', lambda cell: f'{cell[0]} data-label="{next(names)}"', table[0])


def _navigation(users: Sequence[str]) -> str:
    parts = {
        "For users": users,
        "For administrators": ADMINISTRATORS,
        "Reference": REFERENCE,
        "For contributors": CONTRIBUTORS,
    }
    return "".join(toctree(pages, caption) for caption, pages in parts.items())


def _append(sources: Sources, place: str, text: str) -> None:
    with (sources.folder / place).open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
