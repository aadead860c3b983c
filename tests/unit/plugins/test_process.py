"""A process of the service with plug-ins that do what they should not: it answers, and says so."""

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import jobs
from tests.support.plugins import RULE, SAYS_NO, install

MODULES = {
    "acme_raises": RULE.format(id="acme-raises", body="1 / 0\n    yield"),
    "acme_exits": RULE.format(id="acme-exits", body="raise SystemExit(1)\n    yield"),
    "acme_no": RULE.format(id="acme-no", body=SAYS_NO),
    "acme_gone": "import os, no_such_module",
}


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[tuple[str, str]]:
    """The addresses of a process with the plug-ins in `folder`."""
    command = [sys.executable, "-m", "webhook", "--plugins", "acme", "serve", "--ca-file", str(folder / "ca.pem")]
    addresses = [
        "--listen",
        "127.0.0.1:0",
        "--ops-listen",
        "127.0.0.1:0",
        "--drain-seconds",
        "0",
        "--ssh-keys-ready",
        "0",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "KUBERNETES_SERVICE_HOST"}
    environment["PYTHONPATH"] = str(folder)
    with subprocess.Popen(
        [*command, *addresses, *flags], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            found = ("", "")
            for line in process.stderr:
                event = json.loads(line)
                if event["event"] == "listening":
                    found = event["address"], event["ops"]
                if event["event"] == "ready":
                    break
            yield found
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()


def test_it_answers_all_the_same(tmp_path: Path) -> None:
    install(tmp_path, "acme", MODULES, {"rules": {name.replace("_", "-"): f"{name}:check" for name in MODULES}})
    with serving(tmp_path) as (address, ops):
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        headers = {"Content-Type": "application/json"}
        for _ in range(2):
            review = urllib.request.Request(f"{address}/validate-mpijob", data=jobs.body(jobs.GOOD), headers=headers)
            with urllib.request.urlopen(review, context=context) as reply:
                response = json.load(reply)["response"]
            assert "I say no" in response["status"]["message"]
            assert response["auditAnnotations"]["audited"] == "acme-exits,acme-raises"
        with urllib.request.urlopen(f"{ops}/readyz") as reply:
            (line,) = (text for text in reply.read().decode().splitlines() if "plug-in" in text)
        assert line.startswith(
            "[!]plug-in acme: rule acme-gone: cannot be imported: ModuleNotFoundError: No module named"
        )
        assert "rule acme-exits failed 2 times, last with SystemExit in acme_exits.py:11" in line
        assert "rule acme-raises failed 2 times, last with ZeroDivisionError in acme_raises.py:11" in line
