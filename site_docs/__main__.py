"""Builds it: `python -m site_docs build/site`."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import main as sphinx

from site_docs import entries
from site_docs.sources import FILES, ROOT, Sources, toctree

PLAYGROUND = ROOT / "build" / "page"
POLICIES = ROOT / "manifests" / "policies"
USERS = [
    "users", "real-jobs", "why", "clients", "command", "ci", "topology", "pod-security", "messages",
    "reference/rules", "reference/injections",
]  # fmt: skip
ADMINISTRATORS = [
    "administrators", "policies", "own-rules", "roll-out", "dashboard", "runbook", "disconnected", "older-versions",
    "trainer", "benchmarks", "SECURITY", "reference/policy", "reference/cli", "reference/metrics",
    "reference/pod-security", "reference/licences",
]  # fmt: skip
CONTRIBUTORS = ["architecture", "development", "CHANGELOG", "README"]
ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    "<pre>": '<pre tabindex="0">',
}
PLAY = '\n<a href="playground/index.html">The playground</a>: type a job and see its verdict, in your browser alone.\n'


def main() -> int:
    """Sphinx's exit status: a link that leads nowhere is an error."""
    parser = argparse.ArgumentParser(prog="python -m site_docs", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        sources = Sources(Path(temporary) / "sources")
        for path, text in entries.pages():
            sources.page(path, text)
        sources.write()
        _append(sources, "index.md", PLAY * PLAYGROUND.is_dir() + _navigation())
        policies = sorted({path.name for path in POLICIES.glob("*.yaml")} - {"kustomization.yaml"})
        _append(sources, "policies.md", toctree(f"{name} </{FILES}/manifests/policies/{name}>" for name in policies))
        for kind in entries.REFERENCE:
            _append(sources, f"reference/{kind}s.md", toctree(f"/{name}" for name in entries.names(kind)))
        failed = sphinx(
            ["-W", "--keep-going", "-q", "-n", "-c", str(Path(__file__).parent), str(sources.folder), str(folder)]
        )
    shutil.rmtree(folder / ".doctrees", ignore_errors=True)
    for page in folder.rglob("*.html"):
        page.write_text(_for_everybody(page.read_text(encoding="utf-8")), encoding="utf-8")
    if not failed and PLAYGROUND.is_dir():
        shutil.copytree(PLAYGROUND, folder / "playground")
    return failed


def _for_everybody(html: str) -> str:
    """What the theme leaves out, for those who have a keyboard or hear the page."""
    for old, new in ACCESSIBLE.items():
        html = html.replace(old, new)
    return html


def _navigation() -> str:
    parts = {"For users": USERS, "For administrators": ADMINISTRATORS, "For contributors": CONTRIBUTORS}
    return "".join(toctree(pages, caption) for caption, pages in parts.items())


def _append(sources: Sources, place: str, text: str) -> None:
    with (sources.folder / place).open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
