"""The page without a server: this project's modules run in Pyodide, here in Node instead of a browser."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import EXAMPLES, ROOT
from tests.support.rare import rare
from tools.page import build, static
from webhook.parts.playground.page_data import page_data
from webhook.parts.playground.verdicts import answer

# Pyodide starts in ten seconds, or much more slowly on a busy machine.
pytestmark = pytest.mark.timeout(900)
GOOD = (EXAMPLES / "openmpi-pi.yaml").read_text()
PROGRAM = ROOT / "tests" / "support" / "page" / "answers.mjs"
POLICY = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\nsecurity: yes\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    static.write(folder)
    return folder


def questions() -> Iterator[dict[str, str]]:
    """Inputs of the page: every example, and invalid ones."""
    examples = page_data()["examples"]
    yield from ({"job": each["text"]} for each in examples["job"])
    yield from ({"job": GOOD, "policy": each["text"]} for each in examples["policy"])
    yield from ({"job": examples["job"][-1]["text"], "cluster": each["text"]} for each in examples["cluster"])
    yield from ({"job": GOOD, "policy": POLICY}, {"job": "kind: Pod"}, {"job": GOOD, "cluster": "kind: 1"})


@rare
def test_pyodide_gives_the_same_verdicts_as_cpython(site: Path) -> None:
    """Pyodide has a different Python version, a 32-bit platform, and no libyaml."""
    inputs = [*questions()]
    (site / "package.json").write_text('{"type": "module"}')  # for Node
    archives = json.loads((site / "archives.json").read_text())
    command = [build.node(), PROGRAM, ROOT / "page" / "src" / "python.js", site, *archives]
    done = subprocess.run(command, input=json.dumps(inputs), capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    for question, found in zip(inputs, json.loads(done.stdout), strict=True):
        assert found == json.loads(json.dumps(answer(question))), question
