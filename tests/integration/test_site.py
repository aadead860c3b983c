"""The documentation as a site: built strictly, complete, and in a real browser."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.bench import environment
from tests.controlplane.progress import Progress
from tests.support.page import build
from tests.support.page.browser import browser
from tests.support.paths import ROOT
from tests.support.samples import rare
from webhook.cli import explanations
from webhook.rules import REGISTRY

# Packages are fetched, and a browser.
pytestmark = [pytest.mark.timeout(900), rare]
PATIENCE_MS = 240_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = environment.this(Progress(), ROOT / "requirements" / "site.txt").python
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run([python, "-m", "site_docs", folder], cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loading = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']([^"']+)|<link\b[^>]*\bhref=["']([^"']+)""")
    named = {found[1] or found[2] for page in site.rglob("*.html") for found in loading.finditer(page.read_text())}
    assert named
    assert [url for url in named if re.match(r"(\w+:)?//", url)] == []
    sheets = [style.read_text() for style in site.rglob("*.css")]
    styles = {url for sheet in sheets for url in re.findall(r"(?:url\(|@import)\s*[\"']?(\S+)", sheet)}
    assert [url for url in styles if re.match(r"(\w+:)?//", url)] == []


@pytest.mark.parametrize("entry", explanations.entries(), ids=lambda entry: f"{entry.kind}:{entry.id}")
def test_every_rule_and_injection_has_a_page(site: Path, entry: explanations.Explanation) -> None:
    assert f"<h1>{entry.id}<" in _page(site, entry)


def test_messages_are_shown_with_the_mistake_and_what_to_do(site: Path) -> None:
    page = (site / "rules" / "worker-count.html").read_text()
    for text in ("1 worker, at least 2 required", "One worker", "Set replicas to 2 or more."):
        assert text in page
    told = {entry.id for entry in explanations.entries() if "What to do:" in _page(site, entry)}
    assert told == set(REGISTRY)
    assert all("it puts:" in _page(site, entry) for entry in explanations.entries() if entry.kind == "injection")
    assert "1 worker, at least 2 required" in (site / "messages.html").read_text()


def _page(site: Path, entry: explanations.Explanation) -> str:
    return (site / f"{entry.kind}s" / f"{entry.id}.html").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_it_is_searched_and_read_by_everybody(address: str, scheme: str) -> None:
    requested: list[str] = []
    with browser() as started:
        context = started.new_context(color_scheme=scheme, viewport={"width": 1360, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", lambda each: requested.append(each.url))
        tab = context.new_page()
        found = []
        for name in ("index", "rules/worker-count", "users"):
            tab.goto(f"{address}{name}.html")
            tab.evaluate((build.dependency("axe-core") / "axe.min.js").read_text())
            violations = tab.evaluate("async () => (await axe.run()).violations")
            found += [f"{name}: {each['id']}: {node['html']}" for each in violations for node in each["nodes"]]
            if folder := os.environ.get("MPIJOB_PICTURES"):
                tab.screenshot(path=f"{folder}/site-{name.replace('/', '-')}-{scheme}.png")
        tab.goto(f"{address}index.html")
        tab.get_by_role("textbox", name="Search").first.fill("worker-count")
        tab.keyboard.press("Enter")
        tab.locator("#search-results a[href*='rules/worker-count.html']").first.wait_for()
    assert found == []
    assert [url for url in requested if not url.startswith((address, "data:"))] == []
