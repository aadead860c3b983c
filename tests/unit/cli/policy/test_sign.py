"""The commands that sign policies and say whether they are."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.policies import HEADER, configmap, policy_configmap
from tests.support.signing import key_pair
from webhook.cli.main import main

TEXT = f"{HEADER}# why: OPS-42\nrules: {{gpus: {{max: 4}}}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    key_pair(tmp_path)
    (tmp_path / "base.yaml").write_text(json.dumps(configmap("base", TEXT)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["policy", *arguments], input=stdin, catch_exceptions=False)


def test_what_is_signed_can_be_verified_and_is_as_it_was(folder: Path) -> None:
    made = run("sign", "base.yaml", "--key", "policy.key", "--serial", "7")
    assert made.exit_code == 0
    (stored,) = yaml.safe_load_all(made.stdout)
    assert stored["data"] == {"policy.yaml": TEXT}
    assert stored["metadata"].pop("annotations").keys() == {"training.openshift.io/policy-signature"}
    assert stored == configmap("base", TEXT)
    shown = run("verify", "-", "--key", "policy.pub", stdin=made.stdout)
    assert (shown.exit_code, shown.stdout) == (0, 'standard input: ConfigMap "base" is signed, serial 7\n')


def test_the_serial_is_the_time(folder: Path) -> None:
    made = run("sign", "base.yaml", "--key", "policy.key")
    (found,) = json.loads(run("verify", "-", "--key", "policy.pub", "-o", "json", stdin=made.stdout).stdout)
    assert found["serial"] > 1_700_000_000
    assert (found["signed"], found["fault"]) == (True, "")


def test_what_was_changed_is_told(folder: Path) -> None:
    made = run("sign", "base.yaml", "--key", "policy.key").stdout.replace("max: 4", "max: 9")
    shown = run("verify", "-", "--key", "policy.pub", stdin=made)
    assert shown.exit_code == 1
    assert 'ConfigMap "base" is not signed by a key that the service trusts, or was changed' in shown.stdout
    assert run("verify", "base.yaml", "--key", "policy.pub").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["sign", "base.yaml", "--key", "absent"], "absent: No such file or directory"),
        (["sign", "base.yaml", "--key", "policy.pub"], "policy.pub has no private key in PEM"),
        (["verify", "base.yaml", "--key", "policy.key"], "policy.key has no public key in PEM"),
        (["sign", "bare.yaml", "--key", "policy.key"], "no policy in a ConfigMap in bare.yaml: `policy new NAME"),
        (["sign", "broken.yaml", "--key", "policy.key"], "error:   line 3: mode: must be enforce"),
    ],
)
def test_what_cannot_be_used(folder: Path, arguments: list[str], fault: str) -> None:
    (folder / "bare.yaml").write_text(TEXT)
    (folder / "broken.yaml").write_text(json.dumps(policy_configmap("mode: loud")))
    shown = run(*arguments)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert fault in shown.stderr
