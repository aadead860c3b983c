"""The record of reviews: bounded, private, and never in the way."""

import io
import json
import os
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import jobs
from webhook.admission.decision import Decision
from webhook.server import recorder as recorders
from webhook.server.log import make_log
from webhook.server.recorder import Recorder

NOW = datetime(2027, 1, 15, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


class Bench:
    """A recorder whose thread the test is."""

    def __init__(self, folder: Path, *, most_bytes: int = 2**20, rate: float = 1000) -> None:
        self.clock = Clock()
        self.stream = io.BytesIO()
        self.recorder = Recorder(folder, most_bytes=most_bytes, rate=rate, log=make_log(self.stream), clock=self.clock)
        self.folder = folder
        self.number = 0

    def offer(self, *, write: bool = True, **changes: Any) -> None:
        self.number += 1
        self.clock.time += changes.pop("seconds", 1)
        request = jobs.request(jobs.changed(changes.pop("job", {})), **changes)
        self.recorder.offer(request, Decision(name="train"), {"a": "b"}, NOW + timedelta(seconds=self.number))
        if write:
            self.write()

    def write(self) -> None:
        while not self.recorder._waiting.empty():
            self.recorder._take(self.recorder._waiting.get_nowait())

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.iterdir())

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for file in self.files for line in file.read_bytes().splitlines()]

    @property
    def told(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.stream.getvalue().splitlines()]


def test_a_review_is_a_line_that_its_owner_alone_can_read(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.offer(username="alice", job={"Worker.template.spec.containers.0.env": [{"name": "A", "value": "hidden"}]})
    (file,) = bench.files
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (line,) = bench.lines
    assert (line["operation"], line["namespace"], line["name"], line["labels"]) == (
        "CREATE",
        "team-a",
        "train",
        {"a": "b"},
    )
    assert "alice" not in file.read_text()
    assert "hidden" not in file.read_text()


def test_users_are_told_apart_by_names_that_mean_nothing_elsewhere(tmp_path: Path) -> None:
    bench, other = Bench(tmp_path / "a"), Bench(tmp_path / "b")
    for each in (bench, other):
        each.folder.mkdir()
        for user in ("alice", "bob", "alice", ""):
            each.offer(username=user)
    names = [line.get("user", "") for line in bench.lines]
    assert (names[0] == names[2], names[0] == names[1], names[3]) == (True, False, "")
    assert names[0] not in [line.get("user") for line in other.lines]


def test_dry_runs_and_what_was_not_judged_are_left_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    tried = jobs.request(jobs.GOOD)
    tried.dry_run = True
    bench.recorder.offer(tried, Decision(name="x"), None, NOW)
    bench.recorder.offer(jobs.request(jobs.GOOD), Decision(name="x", skipped="being deleted"), None, NOW)
    bench.write()
    assert (bench.files, set(bench.recorder.outcomes.values())) == ([], {0})


def test_the_folder_never_has_more_than_its_bound(tmp_path: Path) -> None:
    bench = Bench(tmp_path, most_bytes=40_000)
    for _ in range(200):
        bench.offer()
        assert sum(file.stat().st_size for file in bench.files) <= 40_000
    assert len(bench.files) > 4
    assert bench.recorder.outcomes["written"] == 200
    assert bench.lines[-1]["time"] == "2027-01-15T00:03:20Z"


def test_what_earlier_processes_left_counts_too(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"reviews-20260101T00000{number}.jsonl").write_bytes(b"x" * 10_000)
    (tmp_path / "mine.txt").write_bytes(b"y" * 90_000)
    bench = Bench(tmp_path, most_bytes=40_000)
    bench.offer()
    left = [file.name for file in bench.files if file.name.startswith("reviews-2026")]
    assert left == ["reviews-20260101T000002.jsonl", "reviews-20260101T000003.jsonl", "reviews-20260101T000004.jsonl"]
    assert (tmp_path / "mine.txt").exists()


def test_more_than_the_rate_are_counted_and_told_with_the_next(tmp_path: Path) -> None:
    bench = Bench(tmp_path, rate=2)
    for _ in range(10):
        bench.offer(seconds=0.1)
    assert bench.recorder.outcomes["rate"] > 5
    bench.offer(seconds=1)
    counted = sum(line.get("unrecorded", 0) for line in bench.lines)
    assert counted == bench.recorder.outcomes["rate"]
    assert len(bench.lines) + counted == 11


def test_a_thread_that_is_behind_costs_no_review(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for _ in range(recorders.WAITING + 3):
        bench.offer(write=False)
    assert bench.recorder.outcomes["behind"] == 3


def test_a_job_of_a_megabyte_is_left_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.offer(job={"metadata.annotations": {"a": "x" * recorders.LARGEST}})
    assert (bench.recorder.outcomes["large"], bench.files) == (1, [])


def test_a_folder_that_cannot_be_written_to_is_told_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "absent")
    for _ in range(50):
        bench.offer()
    assert bench.told == ["reviews are not recorded"]
    assert bench.recorder.concerns() == {
        "record": f"reviews are not recorded: {tmp_path / 'absent'}: No such file or directory"
    }
    assert bench.recorder.outcomes["unwritable"] == 50
    bench.folder.mkdir()
    bench.offer()  # not tried again before its time
    bench.offer(seconds=recorders.RETRY)
    bench.offer()
    assert bench.told == ["reviews are not recorded", "reviews are recorded again"]
    assert bench.recorder.concerns() == {}
    assert len(bench.lines) >= 2


def test_a_full_disk_is_told_and_half_a_line_is_no_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    bench.offer()
    real = os.write
    monkeypatch.setattr(recorders.os, "write", lambda file, data: real(file, data[: len(data) // 2]))
    bench.offer()
    monkeypatch.undo()
    bench.offer(seconds=recorders.RETRY)
    assert "no space left on device" in bench.stream.getvalue().decode()
    whole = [
        line for file in bench.files for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
    ]
    assert len(whole) == 2


def test_a_fault_of_ours_ends_neither_the_thread_nor_tells_of_the_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    monkeypatch.setattr(recorders.recorded, "of", lambda *_, **__: {}["secret"])
    bench.offer()
    assert bench.told == ["reviews are not recorded"]
    assert b"secret" not in bench.stream.getvalue()


def test_the_thread_writes_what_waits_when_the_service_ends(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with bench.recorder.running():
        bench.offer(write=False)
        bench.offer(write=False)
    assert len(bench.lines) == 2
    assert "recorder" not in [thread.name for thread in threading.enumerate()]
