"""The page without a server: our own modules under Pyodide, in Node and in a real browser."""

import json
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.page import build, static
from tests.support.page.browser import browser
from tests.support.paths import EXAMPLES, ROOT
from webhook.cli.playground.page_data import page_data
from webhook.cli.playground.verdicts import answer

# Pyodide starts in ten seconds, on a machine that is busy in many more.
pytestmark = pytest.mark.timeout(900)
PATIENCE_MS = 400_000
GOOD = (EXAMPLES / "openmpi-pi.yaml").read_text()
PROGRAM = ROOT / "tests" / "support" / "page" / "answers.mjs"
POLICY = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\nsecurity: yes\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    static.write(folder)
    return folder


def questions() -> Iterator[dict[str, str]]:
    """Every example, and what cannot be used."""
    examples = page_data()["examples"]
    yield from ({"job": each["text"]} for each in examples["job"])
    yield from ({"job": GOOD, "policy": each["text"]} for each in examples["policy"])
    yield from ({"job": examples["job"][-1]["text"], "cluster": each["text"]} for each in examples["cluster"])
    yield from ({"job": GOOD, "policy": POLICY}, {"job": "kind: Pod"}, {"job": GOOD, "cluster": "kind: 1"})


def test_the_same_verdicts_as_here(site: Path) -> None:
    """Another Python, another machine's words, and no libyaml."""
    asked = [*questions()]
    archives = json.loads((site / "archives.json").read_text())
    command = [build.node(), PROGRAM, ROOT / "page" / "src" / "python.js", site, *archives]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    for question, found in zip(asked, json.loads(done.stdout), strict=True):
        assert found == json.loads(json.dumps(answer(question))), question


class Handler(SimpleHTTPRequestHandler):
    """Files alone, as any web server has them, with the policy that the page itself brings."""

    def guess_type(self, path: Any) -> str:
        """Also where the machine's tables know no modules: a browser runs them as JavaScript alone."""
        types = {".mjs": "text/javascript", ".wasm": "application/wasm"}
        return types.get(Path(path).suffix) or super().guess_type(path)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_in_a_browser_nothing_leaves_it(address: str) -> None:
    requested: list[str] = []
    errors: list[str] = []
    with browser() as started:
        context = started.new_context()
        context.set_default_timeout(PATIENCE_MS)
        tab = context.new_page()
        context.on("request", lambda each: requested.append(each.url))
        context.on("console", lambda said: said.type == "error" and errors.append(said.text))
        tab.goto(address)
        tab.locator("#status", has_text="one-worker would be refused, 2 problems").wait_for()
        loaded = len(requested)
        tab.locator("#job select").select_option(label="openmpi pi")
        tab.locator("#status", has_text="openmpi-pi would be admitted").wait_for()
        tab.locator("#job .cm-line", has_text="replicas: 2").click()
        tab.keyboard.press("End")
        tab.keyboard.type("00")
        tab.locator("#status", has_text="openmpi-pi would be refused, 1 problem").wait_for()
        assert tab.get_by_text("nothing that you write leaves it").is_visible()
    assert errors == []
    assert [url for url in requested if not url.startswith((address, "data:"))] == []
    assert requested[loaded:] == [], "a verdict needs nobody"
