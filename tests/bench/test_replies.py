"""The comparison of replies compares something: every rule and injection speaks in some reply, and a change is found."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.replies import __main__ as command
from tests.support.paths import ROOT
from webhook.injections import REGISTRY as INJECTIONS
from webhook.rules import REGISTRY as RULES
from webhook.rules import worker_count

FEW = 3000
# Injections whose settings name things that the drawn cluster does not have.
SILENT: set[str] = set()


@pytest.fixture(scope="module")
def given() -> dict[str, object]:
    return command.prepared(FEW)


def replies(given: dict[str, object], folder: Path) -> list[str]:
    (folder / "given.json").write_text(json.dumps(given))
    return command.answers(ROOT, folder / "given.json", folder / "replies")


def test_every_rule_and_injection_speaks(given: dict[str, object], tmp_path: Path) -> None:
    spoke: Counter[str] = Counter()
    for line in replies(given, tmp_path):
        reply, _ = json.JSONDecoder().raw_decode(line)
        annotations = reply["response"].get("auditAnnotations", {})
        for key in ("denied", "warned", "audited", "injected"):
            spoke.update(filter(None, annotations.get(key, "").split(",")))
    assert sorted({*RULES, *INJECTIONS} - set(spoke) - SILENT) == []


def test_the_cases_are_the_same_each_time(given: dict[str, object]) -> None:
    assert command.prepared(FEW) == given


def test_another_tree_with_another_text_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = command.tree("HEAD", tmp_path)
    source = other / Path(worker_count.__file__).relative_to(ROOT)
    source.write_text(source.read_text().replace("at most", "no more than"))
    monkeypatch.setattr("sys.argv", ["replies", str(other), "--cases", "300"])
    assert command.main() == 1
    assert "before" in capsys.readouterr().out
