"""The list of what is enforced by and by."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.policies import policy_configmap
from webhook.cli.main import main
from webhook.policy import staging

NAMES = [f"team-{number}" for number in range(20)]
POLICY = """\
namespaces: {matchLabels: {tier: premium}}
mode: warn
enforceFrom: 2027-02-01
enforceShare: 25
staged: [{rules: [images, gpus], until: audit, enforceFrom: '2027-01-01T00:00:00+01:00'}]
"""


def namespaces() -> list[dict[str, object]]:
    """Of twenty premium ones and another one."""
    metadata = [{"name": name, "labels": {"tier": "premium"}} for name in NAMES] + [{"name": "other"}]
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": each} for each in metadata]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps({"kind": "List", "items": [policy_configmap(POLICY), *namespaces()]}))
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["policy", "stages", *arguments], catch_exceptions=False)


def test_each_stage_has_its_line(cluster: Path) -> None:
    drawn = [name for name in NAMES if staging.position("platform", name) * 100 < 25 << 64]
    shown = run("--cluster", str(cluster), "--on", "2027-01-15")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        f"platform: the mode: enforced from 2027-02-01 in {len(drawn)} of 20 namespaces (25 %), warn before and"
        " elsewhere",
        "platform: gpus, images: enforced since 2027-01-01T00:00:00+01:00 in 20 of 20 namespaces, audit before and"
        " elsewhere",
    ]


def test_for_programs_the_namespaces_are_named(cluster: Path) -> None:
    mode, rules = json.loads(run("--cluster", str(cluster), "--on", "2027-02-01", "-o", "json").stdout)
    assert (mode["enforceShare"], mode["hasCome"], mode["namespaces"]) == (25, True, 20)
    assert set(mode["enforced"]) < set(NAMES)
    assert (rules["rules"], rules["enforced"]) == (["gpus", "images"], sorted(NAMES))


def test_without_stages_and_without_namespaces(tmp_path: Path) -> None:
    (path := tmp_path / "c.yaml").write_text(json.dumps(policy_configmap("mode: warn")))
    assert run("--cluster", str(path)).stdout == "nothing is enforced by and by\n"
    path.write_text(json.dumps(policy_configmap("mode: warn\nenforceShare: 10")))
    assert run("--cluster", str(path)).stdout == "platform: the mode: enforced (10 %), warn before and elsewhere\n"
