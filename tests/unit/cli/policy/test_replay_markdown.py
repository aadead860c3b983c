"""Replays of records, and their reports for an issue."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.support.jobs import NO_TOKEN, changed, request
from tests.support.policies import HEADER, policy_configmap
from webhook.admission import recorded
from webhook.admission.decision import Decision
from webhook.admission.recorded import RecordedReview
from webhook.cli.main import main
from webhook.cli.policy import records

THEN = datetime(2027, 1, 15, tzinfo=UTC)
COMMAND = "Launcher.template.spec.containers.0.command"


def review(name: str, namespace: str, workers: int, **more: Any) -> RecordedReview:
    changes = {"metadata.name": name, "metadata.namespace": namespace, "Worker.replicas": workers}
    made = recorded.of(
        request(changed({**NO_TOKEN, COMMAND: ["mpirun", "python"], **changes})),
        Decision(name=name),
        time=THEN,
        user="",
        labels={},
    )
    return msgspec.structs.replace(made, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cluster with one policy, a record of four reviews in two files, and policies to try."""
    (found := tmp_path / "reviews").mkdir()
    team_b = [review("train", "team-b", 9), review("a-b", "team-b", 9)]
    team_a = [review("train", "team-a", 9, unrecorded=6), review("small", "team-a", 2, redacted=3)]
    for number, reviews in enumerate((team_a, team_b)):
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in reviews)
        (found / f"reviews-{number}.jsonl").write_bytes(lines + b'{"half": "a l')
    (found / "notes.txt").write_text("not a record")
    (tmp_path / "cluster.yaml").write_text(json.dumps(policy_configmap("rules: {gpus: {max: 8}}")))
    (tmp_path / "tight.yaml").write_text(f"{HEADER}rules: {{worker-count: {{max: 4}}}}\n")
    staged = "mode: warn\nenforceFrom: 2027-02-01\nrules: {worker-count: {max: 4}}\n"
    (tmp_path / "staged.yaml").write_text(HEADER + staged)
    return tmp_path


def replay(folder: Path, *arguments: str) -> Result:
    given = ["policy", "replay", "--cluster", str(folder / "cluster.yaml"), *arguments]
    return CliRunner().invoke(main, given, catch_exceptions=False)


def test_who_would_be_hit_by_rule_and_namespace(folder: Path) -> None:
    shown = replay(
        folder, "--policy", str(folder / "tight.yaml"), "--recorded", str(folder / "reviews"), "-o", "markdown"
    )
    assert shown.exit_code == 1
    assert shown.stdout.splitlines() == [
        "# What other policies would mean for jobs",
        "",
        f"- now: platform (namespace mpijob-webhook of {str(folder).replace('_', chr(92) + '_')}/cluster.yaml)",
        "- then: platform, tight (new)",
        "- 4 of 10 reviews were recorded; 1 of them without values that may be secret; 2 lines cannot be read",
        "- 4 reviews decided by other policies than those in force cannot be compared",
        "",
        "**would newly deny 3 of 4 recorded reviews: worker-count 3 (team-a/train, team-b/a-b, team-b/train)**",
        "",
        "## Refused, by rule and namespace",
        "",
        "| Rule | Namespace | New | Gone | As now | Jobs newly hit |",
        "| --- | --- | ---: | ---: | ---: | --- |",
        "| worker-count | team-b | 2 | 0 | 0 | a-b, train |",
        "| worker-count | team-a | 1 | 0 | 0 | train |",
    ]


def test_for_programs(folder: Path) -> None:
    shown = replay(folder, "--policy", str(folder / "tight.yaml"), "--recorded", str(folder / "reviews"), "-o", "json")
    found = json.loads(shown.stdout)
    assert found["hits"] == [
        {
            "action": "deny",
            "rule": "worker-count",
            "namespace": "team-a",
            "new": ["team-a/train"],
            "gone": [],
            "asNow": 0,
        },
        {
            "action": "deny",
            "rule": "worker-count",
            "namespace": "team-b",
            "new": ["team-b/a-b", "team-b/train"],
            "gone": [],
            "asNow": 0,
        },
    ]
    assert (found["notReproduced"], found["jobs"]) == ({}, 4)


def test_a_day_that_comes(folder: Path) -> None:
    given = ("--policy", str(folder / "staged.yaml"), "--recorded", str(folder / "reviews" / "reviews-0.jsonl"))
    now, then = replay(folder, *given, "--on", "2027-01-31"), replay(folder, *given, "--on", "2027-02-01")
    assert (now.exit_code, then.exit_code) == (0, 1)
    assert "would newly deny 1 of 2 recorded reviews: worker-count 1 (team-a/train)" in then.stdout
    assert "then: platform, staged (new), on 2027-02-01T00:00:00Z" in then.stdout


def test_a_day_alone_is_a_change(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(json.dumps(policy_configmap("mode: warn\nenforceFrom: '2999-01-01'")))
    few = folder / "few.jsonl"
    few.write_bytes(msgspec.json.encode(review("one", "team-a", 1)))
    shown = replay(folder, "--on", "2999-01-01", "--recorded", str(few), "-o", "markdown")
    assert shown.exit_code == 1
    assert "| worker-count | team-a | 1 | 0 | 0 | one |" in shown.stdout
    assert "## Warned about, by rule and namespace" in shown.stdout
    assert "| worker-count | team-a | 0 | 1 | 0 |  |" in shown.stdout


def test_what_is_not_reproduced_is_listed(folder: Path) -> None:
    policy = f"platform sha256:{records_digest(folder)}"
    odd = folder / "odd.jsonl"
    odd.write_bytes(msgspec.json.encode(review("odd", "team-a", 2, policy=policy, denied=["resource-quota"])))
    for output in ("text", "markdown"):
        shown = replay(folder, "--policy", str(folder / "tight.yaml"), "--recorded", str(odd), "-o", output)
        assert shown.exit_code == 0
        assert "team-a/odd: then denied by resource-quota, now admitted" in shown.stdout


def records_digest(folder: Path) -> str:
    shown = CliRunner().invoke(
        main, ["policy", "effective", "-n", "team-a", "--cluster", str(folder / "cluster.yaml"), "-o", "json"]
    )
    digest: str = json.loads(shown.stdout)["policies"][0]["digest"]
    return digest[:12]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([], "nothing would change: name policies with --policy or --without, or a day with --on"),
        (["--on", "soon"], "soon is neither a day such as 2027-02-01 nor a time such as 2027-02-01T08:00:00Z"),
        (["--on", "2027-02-01", "--recorded", "absent"], "absent: No such file or directory"),
        (["--on", "2027-02-01", "--recorded", "."], ".: no .jsonl files in it"),
        (["--on", "2027-02-01", "--recorded", "tight.yaml"], "tight.yaml: no review is in it, "),
    ],
)
def test_what_cannot_be_used(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], fault: str) -> None:
    monkeypatch.chdir(folder)
    shown = replay(folder, *arguments)
    assert shown.exit_code == 2
    assert fault in shown.stderr


def test_a_file_that_goes_meanwhile_is_passed_over(folder: Path) -> None:
    found = records.of(folder / "reviews")
    (folder / "reviews" / "reviews-1.jsonl").unlink()
    assert [each.job for each in found] == ["team-a/train", "team-a/small"]


def test_nothing_that_somebody_named_is_markdown(folder: Path) -> None:
    few = folder / "few.jsonl"
    few.write_bytes(msgspec.json.encode(review("one", "a|b](x)", 9)))
    shown = replay(folder, "--policy", str(folder / "tight.yaml"), "--recorded", str(few), "-o", "markdown")
    assert "| worker-count | a\\|b\\](x) | 1 | 0 | 0 | one |" in shown.stdout
