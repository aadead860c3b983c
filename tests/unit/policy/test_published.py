"""The policies in manifests/policies/published: well-known policies of Kyverno and Gatekeeper, rewritten for MPIJobs.

Their effects are tested by the files in that folder, which tests/unit/cli/policy/test_suite.py runs.
"""

from pathlib import Path

import pytest

from tests.support.paths import DOCS, MANIFESTS
from webhook.api import yaml
from webhook.policy import document
from webhook.policy.in_force import policy_model
from webhook.policy.store import KEY, LABEL

FOLDER = MANIFESTS / "policies" / "published"
FILES = sorted(FOLDER.glob("*.yaml"))
PAGE = (DOCS / "policies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_is_a_policy_config_map(path: Path) -> None:
    (config_map,) = yaml.load_all(path.read_text(encoding="utf-8"))
    assert config_map["metadata"] == {"name": f"mpijob-policy-{path.stem}", "labels": {LABEL: "true"}}
    assert list(config_map["data"]) == [KEY]
    assert document.load(config_map["data"][KEY], policy_model()).mode == "enforce"
    assert path.read_text(encoding="utf-8").startswith("# "), "a comment says what the policy is for"


def test_documentation_names_each_policy() -> None:
    assert [path.stem for path in FILES if f"`{path.stem}`" not in PAGE] == []
