"""`mpijob-webhook playground` as a user sees it: the real page in a real browser."""

import base64
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.page.browser import browser
from tests.support.paths import EXAMPLES
from tools.page import build
from webhook.cli import explanations

# The first run downloads npm packages and the browser.
pytestmark = pytest.mark.timeout(600)
# A page is slow on a busy machine.
PATIENCE_MS = 120_000
GOOD = (EXAMPLES / "openmpi-pi.yaml").read_text()
BAD = GOOD.replace("replicas: 2", "replicas: 200")
WIDE = {"width": 1360, "height": 900}


@dataclass
class Opened:
    """The page in a browser tab, with the requests and errors of the page."""

    tab: Any
    url: str
    requested: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def write(self, pane: str, text: str) -> None:
        """Replace all text in an editor by pasting."""
        self.tab.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.tab.locator(f"#{pane} .cm-content").focus()
        self.tab.keyboard.press("Control+A")
        self.tab.keyboard.press("Control+V" if text else "Delete")

    def expect_status(self, text: str) -> None:
        self.tab.locator("#status", has_text=text).wait_for(timeout=PATIENCE_MS)

    def picture(self, name: str) -> None:
        if folder := os.environ.get("MPIJOB_PICTURES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.tab.screenshot(path=f"{folder}/{name}.png", full_page=True)


@contextmanager
def playground() -> Iterator[str]:
    """The URL that the real command prints."""
    command = [sys.executable, "-m", "webhook", "playground", "--page", str(build.built())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split(" ")[0]
            assert url.startswith("http://127.0.0.1:")
            yield url
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The URL of a playground without a cluster."""
    with playground() as url:
        yield url


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture
def scheme() -> str:
    return "light"


@pytest.fixture
def opened(chromium: Any, served: str, scheme: str) -> Iterator[Opened]:
    """The page after its first verdict. At the end of a test, the page must have no errors and no foreign requests."""
    context = chromium.new_context(color_scheme=scheme, viewport=WIDE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = Opened(context.new_page(), served)
    page.tab.set_default_timeout(PATIENCE_MS)
    page.tab.on("request", lambda each: page.requested.append(each.url))
    page.tab.on("pageerror", lambda error: page.errors.append(str(error)))
    page.tab.on("console", lambda said: said.type in {"error", "warning"} and page.errors.append(said.text))
    page.tab.goto(served)
    page.expect_status("rejected")
    yield page
    context.close()
    assert page.errors == []
    assert {urlsplit(url).netloc for url in page.requested if not url.startswith("data:")} == {urlsplit(served).netloc}


def violations(page: Opened) -> list[str]:
    """The accessibility violations that axe-core reports, as text."""
    # The content security policy applies to the page's scripts, not to axe-core.
    script = (build.dependency("axe-core") / "axe.min.js").read_text()
    page.tab.evaluate(script)
    found = page.tab.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {node['html']} {node['failureSummary']}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_job_is_admitted_after_its_fix_is_applied(opened: Opened, scheme: str) -> None:
    opened.write("job", BAD)
    opened.expect_status("openmpi-pi would be rejected, 1 problem")
    cause = opened.tab.locator("li.problem")
    assert "200 workers, at most 100 allowed" in cause.inner_text()
    line = next(number for number, text in enumerate(BAD.splitlines(), 1) if "replicas: 200" in text)
    assert cause.get_by_role("button").inner_text() == f"Line {line}"
    underlined = opened.tab.locator("#job .cm-lintRange-error")
    underlined.wait_for()
    assert underlined.inner_text() == "replicas: 200"
    cause.locator("summary").click()
    assert explanations.find("worker-count")[0].summary in cause.inner_text()
    opened.picture(f"refused-{scheme}")
    assert violations(opened) == []

    cause.get_by_role("button").click()
    for _ in "00":
        opened.tab.keyboard.press("Backspace")
    opened.expect_status("openmpi-pi would be admitted")
    patch = opened.tab.get_by_role("region", name="Changes to the job as a diff")
    assert "training.kubeflow.org/job-type: mpijob" in patch.inner_text()
    assert patch.locator(".added").count() > 3
    assert opened.tab.locator("#job .cm-lintRange-error").count() == 0
    opened.picture(f"admitted-{scheme}")
    assert violations(opened) == []


def test_policy_and_cluster_affect_the_verdict(opened: Opened) -> None:
    opened.write("job", GOOD)
    opened.expect_status("would be admitted")
    opened.tab.locator("#policy summary").click()
    opened.write(
        "policy",
        "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\nrules: {worker-count: {min: 3}}\n",
    )
    opened.expect_status("would be rejected, 1 problem")
    opened.tab.keyboard.press("Backspace")
    opened.tab.keyboard.press("Backspace")
    opened.tab.keyboard.press("Backspace")
    opened.tab.keyboard.type("x")
    opened.expect_status("This cannot be judged: 1 fault")
    opened.tab.locator("#policy .cm-lintRange-error").wait_for()
    opened.tab.locator("p.fault").get_by_role("button", name="Line").click()
    assert opened.tab.evaluate("document.activeElement.closest('#policy') !== null"), (
        "the button moves the cursor to the line"
    )
    opened.write("policy", "")
    opened.tab.locator("#cluster summary").click()
    opened.tab.locator("#cluster select").select_option(label="Quota of gpus")
    opened.tab.locator("#job select").select_option(label="Horovod gpu")
    opened.expect_status("horovod-resnet would be rejected")
    assert "only 2 of 8 GPUs are free" in opened.tab.locator("li.problem").first.inner_text()
    opened.picture("quota")
    assert violations(opened) == []


def test_link_contains_job_policy_and_cluster(opened: Opened) -> None:
    opened.write("job", BAD)
    opened.expect_status("1 problem")
    link = opened.tab.evaluate("location.href")
    other = opened.tab.context.new_page()
    other.goto(link)
    other.locator("#status", has_text="openmpi-pi would be rejected, 1 problem").wait_for(timeout=PATIENCE_MS)
    assert "replicas: 200" in other.locator("#job .cm-content").inner_text()
    other.close()


def test_invalid_text_in_a_link_is_ignored(opened: Opened) -> None:
    packed = zlib.compress(b'{"job": 5, "policy": {}, "cluster": null}', wbits=-zlib.MAX_WBITS)
    other = opened.tab.context.new_page()
    other.goto(f"{opened.tab.url.partition('#')[0]}#{base64.urlsafe_b64encode(packed).decode().rstrip('=')}")
    other.locator("#status", has_text="would be rejected").wait_for(timeout=PATIENCE_MS)
    other.close()


def test_fields_are_completed_and_explained_with_the_keyboard(opened: Opened) -> None:
    opened.write("job", "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec:\n  runPol")
    opened.tab.locator("#job .cm-content").press("Control+End")
    opened.tab.keyboard.type("i")
    opened.tab.get_by_role("option", name="runPolicy").wait_for()
    opened.picture("completion")
    opened.tab.wait_for_timeout(200)  # the editor ignores keys for a moment after the list appears
    opened.tab.keyboard.press("Enter")
    opened.tab.locator("#job .cm-line", has_text="runPolicy:").wait_for()
    opened.write("job", "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec:\n  mpiImplementation: ")
    opened.tab.keyboard.press("Control+Space")
    opened.tab.get_by_role("option", name="MPICH", exact=True).wait_for()
    opened.tab.keyboard.press("Escape")
    opened.tab.keyboard.press("Tab")
    assert opened.tab.evaluate("document.activeElement.tagName") == "SUMMARY", "Tab leaves the editor"
    opened.tab.locator("#policy summary").click()
    opened.write("policy", "rules:\n  worker-count:\n    max: 3")
    opened.tab.locator("#policy .cm-line", has_text="max").get_by_text("max").hover()
    opened.tab.get_by_text("Maximum number of workers").wait_for()


def test_page_fits_a_small_screen(opened: Opened) -> None:
    for width in (400, 360):
        opened.tab.set_viewport_size({"width": width, "height": 740})
        opened.picture(f"small-{width}")
        assert opened.tab.evaluate("document.documentElement.scrollWidth") <= width
        seen = opened.tab.locator("#status").bounding_box()
        assert 0 <= seen["y"] <= 740 - seen["height"], "the verdict is visible"
    assert violations(opened) == []


def test_page_has_one_headline_for_a_single_job(opened: Opened) -> None:
    opened.write("job", GOOD)
    opened.expect_status("openmpi-pi would be admitted")
    assert opened.tab.get_by_text("admitted").count() == 1
    opened.write("job", f"{GOOD}---\n{BAD.replace('openmpi-pi', 'large')}")
    opened.expect_status("large would be rejected")
    assert opened.tab.locator("article h2").all_inner_texts() == [
        "default/openmpi-pi: admitted",
        "default/large: rejected",
    ]
