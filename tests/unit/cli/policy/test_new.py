"""`policy new` writes a policy."""

from functools import partial
from pathlib import Path

import pytest

from tests.support import checking


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


run = partial(checking.run, "policy")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--mode", "audit"),
        ("-l", "tier=dev", "--set", "rules.worker-count.max=3"),
        ("-l", "tier in (dev,test),!prod,team", "--set", "rules.images={allowedRegistries: [quay.io]}"),
        ("-l", "!prod", "--set", "rules.images.requireDigest=true"),
        ("--set", "rules.images.refuseLatest=null", "--inject-only", ""),
        ("--set", "injections.tolerations.enabled=true", "--set", "injections.tolerations.tolerations=[{key: a}]"),
        ("--set", "injections.labels.job[cost-centre]='4711'", "--set", "injections.job-timeout.default=1h"),
    ],
)
def test_written_policy_is_valid(options: tuple[str, ...]) -> None:
    written = run("new", "first", *options)
    assert (written.exit_code, written.stderr) == (0, "")
    Path("first.yaml").write_text(written.stdout)
    assert run("validate", "first.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'NAME'"),
        (("a", "--set", "mode"), "--set mode: is not PATH=VALUE, such as rules.worker-count.max=8"),
        (("a", "--set", "rules..a=1"), "--set rules..a=1: is not a path, such as"),
        (("a", "--set", "mode=[a"), "a list in brackets is not closed"),
        (("a", "--set", "rules.worker-count.max=many"), "rules.worker-count.max: must be a whole number"),
        (("a", "--set", "rules.worker-counts.max=3"), "rules.worker-counts: is not a setting; did you"),
        (("a", "--set", "mode=warn", "--set", "mode.a.b=1"), "there is a value before a, which has no fields"),
    ],
)  # fmt: skip
def test_invalid_option_is_rejected(arguments: tuple[str, ...], message: str) -> None:
    result = run("new", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
