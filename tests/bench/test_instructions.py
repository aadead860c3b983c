"""The table of instructions has every stage, and says so where nothing can be counted."""

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.bench import instruction_counter, instructions
from tests.bench.instruction_counter import NoCounterError
from webhook.policy.in_force import load_policy


def test_each_stage_is_charged_with_what_it_counts() -> None:
    now = 0

    def stages(data: bytes, _: object) -> Iterator[str]:
        nonlocal now
        now += len(data)
        yield "short"
        now += 10 * len(data)
        yield "long"

    found = instructions.measured(stages, [b"ab", b"abcd"], load_policy(None), lambda: now)
    assert found == {"short": 3, "long": 30}


def test_the_table_has_the_whole_review_and_every_rule_and_injection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(instruction_counter, "counter", lambda: count(step=1000).__next__)
    monkeypatch.setattr(instructions, "ROUNDS", 1)
    monkeypatch.setattr(instructions.body, "JOBS", 2)
    assert instructions.main(["--output", str(tmp_path / "figures.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    figures = json.loads((tmp_path / "figures.json").read_text())["instructions"]
    policy = load_policy(None)
    rules, injections = ([entry.id for entry, *_ in each] for each in (policy.rules, policy.injections))
    assert {"whole review", "decode the job", "size", *(f"rule {each}" for each in rules)} <= set(figures["validate"])
    assert {"whole review", *(f"injection {each}" for each in injections)} <= set(figures["mutate"])
    for stage in [*figures["validate"], *figures["mutate"]]:
        assert any(line.startswith(f"{stage} ") for line in lines), stage


def test_markdown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(instruction_counter, "counter", lambda: lambda: 0)
    monkeypatch.setattr(instructions, "figures", lambda _: {"validate": {"whole review": 1_234_567}})
    assert instructions.main(["--markdown"]) == 0
    assert "| whole review | 1,234.6 |" in capsys.readouterr().out.splitlines()


def test_where_nothing_is_counted_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> instruction_counter.Count:
        raise NoCounterError("perf_event_open: No such file or directory")

    monkeypatch.setattr(instruction_counter, "counter", refused)
    assert instructions.main([]) == 1
    expected = "Instructions cannot be counted on this machine: perf_event_open: No such file or directory.\n"
    assert capsys.readouterr().err == expected


def test_the_counter_counts_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with suppress(NoCounterError):
        counted = instruction_counter.counter()
        before = counted()
        assert counted() > before > 0
    monkeypatch.setattr(instruction_counter.platform, "machine", lambda: "vax")
    with pytest.raises(NoCounterError, match="perf_event_open is not known for vax"):
        instruction_counter.counter()
