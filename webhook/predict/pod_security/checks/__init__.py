"""The checks: one file each, found by its name. A check is an id, a level and its revisions by Kubernetes version.

The docstring of a check's module is its documentation: summary, restricted fields and allowed values. There,
`containers[*]` stands for containers, init containers and ephemeral containers alike.
"""

from collections.abc import Callable

import msgspec

from webhook.kit.registry import Registry
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Place, Subject
from webhook.predict.pod_security.texts import fields, setters


class Result(msgspec.Struct, frozen=True):
    """A pod is not allowed; `reason` and `detail` are the texts of Kubernetes."""

    check: str
    reason: str
    detail: str
    paths: tuple[str, ...]
    """The fields that break the check or that it misses, below the pod template.

    Such as `spec.containers[0].securityContext.privileged`.
    """


class Revision(msgspec.Struct, frozen=True):
    """How a check reads from version `since` on, until its next revision."""

    since: Version
    run: Callable[[Subject], Result | None]
    overrides: tuple[str, ...] = ()
    """Baseline checks that restricted leaves out because this one says more."""

    spares: Callable[[Subject], bool] | None = None
    """Which pods pass whatever they say, as those for Windows; None for no pod."""

    def evaluate(self, pod: Subject) -> Result | None:
        """Why `pod` is not allowed; None if it is."""
        return None if self.spares is not None and self.spares(pod) else self.run(pod)


class Check(msgspec.Struct, frozen=True):
    """A check of `level`, with its revisions from old to new; before the first of them there is no such check."""

    id: str
    level: Level
    revisions: tuple[Revision, ...]

    def at(self, version: Version) -> Revision | None:
        """The revision that holds at `version`."""
        return max((r for r in self.revisions if r.since <= version), key=lambda r: r.since, default=None)


def refusal(check: str, reason: str, bad: list[Place], fault: str, field: str, *, pod: bool = False) -> Result | None:
    """None where neither `pod` nor a container is `bad`; else who does what, `fault`, and `field` of each of them."""
    if not (bad or pod):
        return None
    return Result(check, reason, f"{setters(pod, bad)} {fault}", fields(field, bad, pod=pod))


REGISTRY: Registry[Check] = Registry(__name__)


def register(check: str, level: Level, *revisions: Revision) -> None:
    """Add the check with the id `check` to the standard."""
    REGISTRY.add(Check(check, level, revisions))
