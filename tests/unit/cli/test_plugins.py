"""The command `plugins`, and the warnings of other commands about a broken plug-in."""

import json
from pathlib import Path

from tests.support.checking import run
from tests.support.paths import ROOT
from tests.support.plugins import RULE, SAYS_NO, install, install_rule, taken_in

EXAMPLE = ROOT / "manifests" / "examples" / "openmpi-pi.yaml"


def write(folder: Path) -> None:
    modules = {"acme_no": RULE.format(id="acme-no", body=SAYS_NO), "acme_bad": "1/0"}
    install(folder, "acme", modules, {"rules": {"acme-no": "acme_no:check", "acme-bad": "acme_bad:check"}})


FAULT = "rule acme-bad: cannot be imported: ZeroDivisionError: division by zero"


def test_broken_plugin_is_listed_with_its_faults(tmp_path: Path) -> None:
    write(tmp_path)
    with taken_in(tmp_path):
        done = run("--plugins", "acme", "plugins")
        assert done.exit_code == 1
        assert done.stdout == f"acme 1.0: broken\n  rules: acme-no\n  broken: {FAULT}\n"
        assert done.stderr == ""
        listed = json.loads(run("plugins", "-o", "json").stdout)["plugins"]
        assert listed[0]["faults"] == [FAULT]


def test_unused_plugin_is_listed(tmp_path: Path) -> None:
    write(tmp_path)
    with taken_in(tmp_path):
        done = run("plugins")
        assert done.exit_code == 0
        assert "acme 1.0: unused\n  rules: acme-bad, acme-no\n" in done.stdout


def test_other_commands_warn_about_a_broken_plugin(tmp_path: Path) -> None:
    write(tmp_path)
    with taken_in(tmp_path):
        done = run("rules", env={"MPIJOB_WEBHOOK_PLUGINS": "acme"})
        assert done.exit_code == 0
        assert done.stderr == f"warning: plug-in acme: {FAULT}\n"
        assert "acme-no" in done.stdout
        assert "(plug-in acme)" in done.stdout


def test_check_warns_about_a_rule_that_raises_an_exception(tmp_path: Path) -> None:
    install_rule(tmp_path, "yield 1 / 0")
    with taken_in(tmp_path):
        done = run("--plugins", "acme", "check", str(EXAMPLE))
        assert done.exit_code == 0
        assert done.stderr.splitlines()[-1] == (
            "warning: plug-in acme: rule acme-no failed 1 time, last with ZeroDivisionError in acme_no.py:11: jobs "
            "were judged without it"
        )
