"""The comparison of replies works: its cases trigger most rules and injections, and a changed reply is reported."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.replies import __main__ as command
from tests.support.paths import ROOT
from tests.support.rare import rare
from webhook.injections import REGISTRY as INJECTIONS
from webhook.rules import REGISTRY as RULES
from webhook.rules import worker_count

# These tests check only the comparison. Other tests check that each rule has violations.
pytestmark = rare

FEW = 1000
# Minimum share of rules and injections that appear in a reply. New rules and injections may be missing.
SHARE = 0.8


@pytest.fixture(scope="module")
def given() -> dict[str, object]:
    return command.prepared(FEW)


def replies(given: dict[str, object], folder: Path) -> list[str]:
    (folder / "given.json").write_text(json.dumps(given))
    return command.answers(ROOT, folder / "given.json", folder / "replies")


def test_most_rules_and_injections_appear_in_replies(given: dict[str, object], tmp_path: Path) -> None:
    spoke: Counter[str] = Counter()
    for line in replies(given, tmp_path):
        reply, _ = json.JSONDecoder().raw_decode(line)
        annotations = reply["response"].get("auditAnnotations", {})
        for key in ("denied", "warned", "audited", "injected"):
            spoke.update(filter(None, annotations.get(key, "").split(",")))
    silent = sorted({*RULES, *INJECTIONS} - set(spoke))
    assert len(silent) <= (1 - SHARE) * len({*RULES, *INJECTIONS}), silent


def test_changed_message_in_a_different_tree_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = command.tree("HEAD", tmp_path)
    source = other / Path(worker_count.__file__).relative_to(ROOT)
    source.write_text(source.read_text().replace("at most", "no more than"))
    monkeypatch.setattr("sys.argv", ["replies", str(other), "--cases", "100"])
    assert command.main() == 1
    assert "before" in capsys.readouterr().out
