"""Pod Security labels of namespaces. tests/conformance/test_pod_security.py compares results with the API server."""

import re

import pytest

from webhook.predict.pod_security import LATEST, Level, LevelVersion, Version, labels
from webhook.predict.pod_security.levels import parse_level, parse_version

VERSIONS = 'must be "latest" or "v1.x"'


def levels(defaults: labels.NamespaceLevels, **modes: str) -> str:
    """The levels of the modes `enforce`, `audit` and `warn` in a namespace with these labels."""
    given = {labels.PREFIX + mode: level for mode, level in modes.items()}
    return " ".join(map(str, labels.read(given | {"team": "a"}, defaults)[0]))


def test_defaults_of_the_cluster_apply_if_labels_are_missing() -> None:
    old = Version(20)
    defaults = labels.NamespaceLevels(
        LevelVersion(Level.BASELINE, old), LevelVersion(Level.RESTRICTED), LevelVersion(Level.BASELINE, old)
    )
    assert levels(defaults) == "baseline:v1.20 restricted:latest baseline:v1.20"
    assert levels(defaults, enforce="restricted") == "restricted:v1.20 restricted:latest restricted:v1.20"
    assert levels(defaults, enforce="privileged") == "privileged:v1.20 restricted:latest baseline:v1.20"
    assert levels(defaults, audit="none") == "baseline:v1.20 privileged:latest baseline:v1.20"


@pytest.mark.parametrize(("text", "version"), [("latest", LATEST), ("v1.0", Version(0)), ("v1.37", Version(37))])
def test_version_is_parsed_and_written(text: str, version: Version) -> None:
    assert parse_version(text) == version
    assert str(version) == text


@pytest.mark.parametrize(
    "text", ["", "v1", "v1.", "v1.01", "v1.-1", "1.2", "v2.1", "V1.1", "v1.1 ", "v1.x", "Latest", "v1.¹", f"v1.{2**63}"]
)
def test_invalid_version_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(VERSIONS)):
        parse_version(text)


def test_latest_is_above_every_version() -> None:
    assert parse_version(f"v1.{2**63 - 1}") < LATEST
    assert Version(9) < Version(10) < LATEST


def test_levels_are_ordered_and_other_texts_are_rejected() -> None:
    assert [parse_level(text).strictness for text in ("privileged", "baseline", "restricted")] == [0, 1, 2]
    with pytest.raises(ValueError, match="must be one of privileged, baseline, restricted"):
        parse_level("Restricted")
