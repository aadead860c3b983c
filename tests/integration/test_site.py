"""The documentation site is built without warnings, is complete, and works in a real browser."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.progress import Progress
from tests.support import environment
from tests.support.page.browser import browser
from tests.support.page.person import fix_a_job
from tests.support.page.serving import served
from tests.support.paths import ROOT
from tests.support.rare import rare
from tools.page import build, static
from tools.site_docs import policies
from webhook.cli import explanations
from webhook.rules import REGISTRY

# The first run downloads packages and a browser.
pytestmark = [pytest.mark.timeout(900), rare]
PATIENCE_MS = 240_000
WIDE, NARROW = 1360, 400
PAGES = (
    "index",
    "rejections",
    "reference/policy",
    "rules/worker-count",
    "injections/topology",
    "policies/hipaa",
    "messages",
    "benchmarks",
)

QUESTIONS = {
    "quota": "quotas",
    "rotate certificate": "runbook",
    "dev shm": "pod-security",
    "why is my job rejected": "rejections",
    "no matches for kind": "convert",
    "uninstall": "runbook",
    "exempt": "exemptions",
    "Kueue queue": "quotas",
    "topology": "topology",
    "custom rule": "custom-rules",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = environment.this(Progress(), ROOT / "requirements" / "site.txt")
    folder, playground = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("playground")
    static.write(playground)
    command = [python, "-m", "tools.site_docs", folder, "--playground", playground]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as url:
        yield url


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
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


def test_pages_of_rules_show_messages_with_mistake_and_fix(site: Path) -> None:
    page = (site / "rules" / "worker-count.html").read_text()
    for text in ("1 worker, at least 2 required", "One worker", "Set replicas to 2 or more."):
        assert text in page
    with_fix = {entry.id for entry in explanations.entries() if "What to do:" in _page(site, entry)}
    assert with_fix >= set(REGISTRY)
    injections = [entry for entry in explanations.entries() if entry.kind == "injection"]
    # The reviews in tests/corpus have no user, and no policy that enables `worker-readiness`.
    without_example = {"created-by", "worker-readiness"}
    assert {entry.id for entry in injections if "it puts:" not in _page(site, entry)} == without_example
    catalogue = (site / "messages.html").read_text()
    assert "1 worker, at least 2 required" in catalogue
    assert "\u201c" not in catalogue, "quotes are plain, as in YAML"


@pytest.mark.parametrize("name", policies.NAMES)
def test_every_ready_made_policy_has_a_page_with_its_effects(site: Path, name: str) -> None:
    page = (site / "policies" / f"{name}.html").read_text()
    for lead in ("For", "What it changes.", "Living with it."):
        assert f"<strong>{lead}</strong>" in page
    assert f"mpijob-policy-{name}" in page, "the page shows the policy file"
    assert re.search("<p>(Refused|Warned|Audited):</p>", page)
    assert "hpc-cpu.html" in (site / "policies.html").read_text()


def test_page_of_a_policy_has_messages_of_real_verdicts(site: Path) -> None:
    page = (site / "policies" / "hpc-cpu.html").read_text()
    assert "spec.slotsPerWorker: 193 slots per worker, at most 192 allowed" in page
    assert "Set slotsPerWorker to 8 or fewer." in page


def _page(site: Path, entry: explanations.Explanation) -> str:
    return (site / f"{entry.kind}s" / f"{entry.id}.html").read_text()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@dataclass
class Opened:
    """A browser tab, its requests and its errors."""

    tab: Any
    scheme: str
    requested: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def faults(self, name: str) -> list[str]:
        """Errors of the current page in two widths: axe-core's violations, and content that is too wide.

        MPIJOB_PICTURES is a folder for screenshots.
        """
        found = []
        for width in (NARROW, WIDE):
            self.tab.set_viewport_size({"width": width, "height": 900})
            if folder := os.environ.get("MPIJOB_PICTURES"):
                self.tab.screenshot(path=f"{folder}/site-{name.replace('/', '-')}-{width}-{self.scheme}.png")
            self.tab.evaluate((build.dependency("axe-core") / "axe.min.js").read_text())
            violations = self.tab.evaluate("async () => (await axe.run()).violations")
            found += [f"{name}: {each['id']}: {node['html']}" for each in violations for node in each["nodes"]]
            scrolled = "[...document.querySelectorAll('.table-wrapper')].some(e => e.scrollWidth > e.clientWidth + 1)"
            if self.tab.evaluate(scrolled):
                found.append(f"{name} has a table that is cut off at {width}")
            if (needs := self.tab.evaluate("document.documentElement.scrollWidth")) > width:
                found.append(f"{name} is {needs} pixels wide in a window of {width}")
        return found


@pytest.fixture
def scheme() -> str:
    return "light"


@pytest.fixture
def opened(chromium: Any, address: str, scheme: str) -> Iterator[Opened]:
    """A browser tab. After the test, checks that the tab has contacted no other host."""
    context = chromium.new_context(color_scheme=scheme, viewport={"width": WIDE, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = Opened(context.new_page(), scheme)
    context.on("request", lambda each: page.requested.append(each.url))
    context.on("console", lambda said: said.type == "error" and page.errors.append(said.text))
    page.tab.goto(f"{address}index.html")
    yield page
    context.close()
    assert page.errors == []
    assert [url for url in page.requested if not url.startswith((address, "data:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_site_is_accessible_and_searchable_in_a_browser(opened: Opened, address: str) -> None:
    found = []
    for name in PAGES:
        opened.tab.goto(f"{address}{name}.html")
        found += opened.faults(name)
    opened.tab.goto(f"{address}index.html")
    opened.tab.get_by_role("textbox", name="Search").first.fill("worker-count")
    opened.tab.keyboard.press("Enter")
    opened.tab.locator("#search-results a[href*='rules/worker-count.html']").first.wait_for()
    assert found == []


def test_first_result_of_a_search_is_the_page_with_the_answer(chromium: Any, address: str) -> None:
    with chromium.new_context() as context:
        tab = context.new_page()
        tab.set_default_timeout(PATIENCE_MS)
        first = {}
        for question in QUESTIONS:
            tab.goto(f"{address}search.html?q={question}")
            tab.locator(".search-summary", has_text="Search finished").wait_for()
            results = tab.locator("#search-results li > a").evaluate_all("all => all.map(e => e.getAttribute('href'))")
            first[question] = results[0].partition(".html")[0]
        tab.goto(f"{address}custom-rules.html")
        assert tab.locator(".highlighted").count() == 0, "the words of the last search are not highlighted"
    assert first == QUESTIONS


def test_playground_of_the_site_sends_no_requests(opened: Opened) -> None:
    opened.tab.get_by_role("link", name="Playground", exact=True).click()
    opened.tab.locator("#status", has_text="one-worker would be rejected, 2 problems").wait_for()
    found = opened.faults("playground")
    loaded = len(opened.requested)
    fix_a_job(opened.tab)
    assert opened.requested[loaded:] == [], "a verdict needs no request"
    assert found + opened.faults("playground-fixed") == []
    opened.tab.get_by_role("link", name="Documentation").click()
    opened.tab.get_by_role("heading", name="mpijob-webhook", level=1).wait_for()
