"""A namespace's Pod Security labels.

The labels are `pod-security.kubernetes.io/enforce`, `audit` and `warn`, and three labels with the suffix `-version`.
The API server rejects invalid values, but older namespaces may have them. Kubernetes then uses the level `restricted`
for `enforce`, the level `privileged` for `audit` and `warn`, and the version `latest` (`PolicyToEvaluate` in
k8s.io/pod-security-admission `api/helpers.go`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from webhook.predict.pod_security.levels import LATEST, Level, LevelVersion, parse_level, parse_version

PREFIX = "pod-security.kubernetes.io/"
_LEVELS = frozenset(Level)


class NamespaceLevels(NamedTuple):
    """The level and version of each mode."""

    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


PRIVILEGED = NamespaceLevels()


class LabelError(NamedTuple):
    """A label with an invalid value. `problem` is the API server's text."""

    label: str
    value: str
    problem: str

    def __str__(self) -> str:
        return f'metadata.labels[{self.label}]: Invalid value: "{self.value}": {self.problem}'


def read(labels: Mapping[str, str], defaults: NamespaceLevels = PRIVILEGED) -> tuple[NamespaceLevels, list[LabelError]]:
    """The levels of a namespace with these labels, and the invalid labels.

    `defaults` is the cluster's admission configuration, which applies where a label is missing.
    """
    if PREFIX not in " ".join(labels):
        return defaults, []
    errors: list[LabelError] = []
    enforce = _mode("enforce", labels, defaults.enforce, errors, unreadable=Level.RESTRICTED)
    enforced = labels.get(PREFIX + "enforce") in _LEVELS
    audit = _mode("audit", labels, defaults.audit, errors, unreadable=Level.PRIVILEGED)
    warn = _mode("warn", labels, defaults.warn, errors, unreadable=Level.PRIVILEGED)
    # Without a label for warnings, a stricter enforced level also applies to warnings.
    if enforced and PREFIX + "warn" not in labels and enforce.level.strictness > warn.level.strictness:
        warn = LevelVersion(enforce.level, warn.version if PREFIX + "warn-version" in labels else enforce.version)
    return NamespaceLevels(enforce, audit, warn), errors


def _mode(
    mode: str, labels: Mapping[str, str], default: LevelVersion, errors: list[LabelError], *, unreadable: Level
) -> LevelVersion:
    level, version = default
    if (text := labels.get(label := PREFIX + mode)) is not None:
        try:
            level = parse_level(text)
        except ValueError as error:
            level = unreadable
            errors.append(LabelError(label, text, str(error)))
    if (text := labels.get(label := f"{PREFIX}{mode}-version")) is not None:
        try:
            version = parse_version(text)
        except ValueError as error:
            version = LATEST
            errors.append(LabelError(label, text, str(error)))
    return LevelVersion(level, version)
