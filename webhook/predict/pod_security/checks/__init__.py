"""The checks: one file each, found by its name. A check is an id, a level and its revisions by Kubernetes version.

The docstring of a check's module is its documentation: summary, restricted fields and allowed values. There,
`containers[*]` stands for containers, init containers and ephemeral containers alike.
"""

from collections.abc import Callable
from dataclasses import dataclass

from webhook.kit.registry import Registry
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject


@dataclass(frozen=True, slots=True)
class Result:
    """A pod is not allowed; `reason` and `detail` are the texts of Kubernetes."""

    check: str
    reason: str
    detail: str
    paths: tuple[str, ...]
    """The fields that break the check or that it misses, below the pod template.

    Such as `spec.containers[0].securityContext.privileged`.
    """


@dataclass(frozen=True, slots=True)
class Revision:
    """How a check reads from version `since` on, until its next revision."""

    since: Version
    run: Callable[[Subject], Result | None]
    overrides: tuple[str, ...] = ()
    """Baseline checks that restricted leaves out because this one says more."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of `level`, with its revisions from old to new; before the first of them there is no such check."""

    id: str
    level: Level
    revisions: tuple[Revision, ...]

    def at(self, version: Version) -> Revision | None:
        """The revision that holds at `version`."""
        return max((r for r in self.revisions if r.since <= version), key=lambda r: r.since, default=None)


REGISTRY: Registry[Check] = Registry(__name__)


def register(check: Check) -> None:
    """Add `check` to the standard."""
    REGISTRY.add(check)
