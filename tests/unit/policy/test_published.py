"""The policies in manifests/policies/published: well-known ones of Kyverno and Gatekeeper, for MPIJobs.

The tests next to them show their effects; tests/unit/cli/policy/test_suite.py runs those.
"""

import re
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
ROW = re.compile(
    r"^\| `([\w-]+)` \| (Kyverno|Gatekeeper) \| (\d+) \| \[([\w-]+)\]\(\S+/([\w-]+)\.yaml\) \| (\d+) \| ", re.MULTILINE
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_is_a_policy_config_map(path: Path) -> None:
    (config_map,) = yaml.load_all(path.read_text(encoding="utf-8"))
    assert config_map["metadata"] == {"name": f"mpijob-policy-{path.stem}", "labels": {LABEL: "true"}}
    assert list(config_map["data"]) == [KEY]
    assert document.load(config_map["data"][KEY], policy_model()).mode == "enforce"
    assert path.read_text(encoding="utf-8").startswith("# "), "it says what it is for"


def said(path: Path) -> int:
    """The number of lines of a policy without comments."""
    (config_map,) = yaml.load_all(path.read_text(encoding="utf-8"))
    lines = [line.strip() for line in config_map["data"][KEY].splitlines()]
    return sum(bool(line) and not line.startswith(("#", "apiVersion:", "kind:")) for line in lines)


def test_the_page_has_each_with_its_lines() -> None:
    rows = ROW.findall(PAGE)
    assert len({name for name, *_ in rows}) == len(rows)
    assert all(shown == file for *_, shown, file, _ in rows)
    assert [(file, int(lines)) for *_, file, lines in rows if said(FOLDER / f"{file}.yaml") != int(lines)] == []
    assert [path.stem for path in FILES if f"published/{path.name})" not in PAGE] == []
