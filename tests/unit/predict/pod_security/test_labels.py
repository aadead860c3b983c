"""A namespace's Pod Security labels: levels, versions, defaults, and invalid values."""

import re

import pytest

from webhook.predict.pod_security import LATEST, Level, LevelVersion, Version, labels
from webhook.predict.pod_security.levels import parse_level, parse_version

LEVELS = "must be one of privileged, baseline, restricted"
VERSIONS = 'must be "latest" or "v1.x"'


def policy(text: str, defaults: labels.NamespaceLevels = labels.PRIVILEGED) -> tuple[str, list[str]]:
    """(enforce, audit and warn as text, errors) for labels in the form `enforce=baseline warn-version=v1.2`."""
    given = {labels.PREFIX + key: value for key, value in (pair.split("=") for pair in text.split())}
    levels, errors = labels.read(given | {"team": "a"}, defaults)
    return " ".join(map(str, levels)), [
        f"{error.label.removeprefix(labels.PREFIX)}: {error.problem}" for error in errors
    ]


P = "privileged:latest"


@pytest.mark.parametrize(
    ("text", "expected", "errors"),
    [
        ("", f"{P} {P} {P}", []),
        ("enforce=privileged", f"{P} {P} {P}", []),
        # warn is as strict as enforce unless it is set; audit is not
        ("enforce=baseline", f"baseline:latest {P} baseline:latest", []),
        ("enforce=restricted enforce-version=v1.20", f"restricted:v1.20 {P} restricted:v1.20", []),
        ("enforce=restricted enforce-version=v1.20 warn-version=v1.3", f"restricted:v1.20 {P} restricted:v1.3", []),
        ("enforce=restricted warn=privileged", f"restricted:latest {P} {P}", []),
        ("enforce=restricted warn=baseline", f"restricted:latest {P} baseline:latest", []),
        ("audit=baseline audit-version=v1.0", f"{P} baseline:v1.0 {P}", []),
        ("warn=restricted warn-version=latest", f"{P} {P} restricted:latest", []),
        ("enforce-version=v1.5", f"privileged:v1.5 {P} {P}", []),
        # invalid values: enforce becomes restricted, audit and warn become privileged, versions become latest
        ("enforce=Baseline", f"restricted:latest {P} {P}", [f"enforce: {LEVELS}"]),
        ("enforce= enforce-version=v1.9", f"restricted:v1.9 {P} {P}", [f"enforce: {LEVELS}"]),
        ("audit=none warn=none", f"{P} {P} {P}", [f"audit: {LEVELS}", f"warn: {LEVELS}"]),
        ("enforce=baseline warn=none", f"baseline:latest {P} {P}", [f"warn: {LEVELS}"]),
        (
            "enforce=baseline enforce-version=1.20",
            f"baseline:latest {P} baseline:latest",
            [f"enforce-version: {VERSIONS}"],
        ),
        ("audit=baseline audit-version=v2.0", f"{P} baseline:latest {P}", [f"audit-version: {VERSIONS}"]),
    ],
)
def test_read(text: str, expected: str, errors: list[str]) -> None:
    assert policy(text) == (expected, errors)


def test_defaults_of_the_cluster_apply_if_labels_are_missing() -> None:
    old = Version(20)
    defaults = labels.NamespaceLevels(
        LevelVersion(Level.BASELINE, old), LevelVersion(Level.RESTRICTED), LevelVersion(Level.BASELINE, old)
    )
    assert policy("", defaults)[0] == "baseline:v1.20 restricted:latest baseline:v1.20"
    assert policy("enforce=restricted", defaults)[0] == "restricted:v1.20 restricted:latest restricted:v1.20"
    assert policy("enforce=privileged", defaults)[0] == "privileged:v1.20 restricted:latest baseline:v1.20"
    assert policy("audit=none", defaults)[0] == "baseline:v1.20 privileged:latest baseline:v1.20"


def test_error_has_the_words_of_the_api_server() -> None:
    _, [error] = labels.read({labels.PREFIX + "warn": "x"})
    assert str(error) == f'metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "x": {LEVELS}'


@pytest.mark.parametrize(("text", "version"), [("latest", LATEST), ("v1.0", Version(0)), ("v1.37", Version(37))])
def test_versions(text: str, version: Version) -> None:
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


def test_levels() -> None:
    assert [parse_level(text).strictness for text in ("privileged", "baseline", "restricted")] == [0, 1, 2]
    with pytest.raises(ValueError, match=LEVELS):
        parse_level("Restricted")
