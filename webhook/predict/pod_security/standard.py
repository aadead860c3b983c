"""The standard as a whole: which checks hold at a level and version, and what they say about a template."""

from functools import cache

from webhook.predict.pod_security.checks import REGISTRY, Result, Revision
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import PodTemplate
from webhook.predict.pod_security.subject import Subject

NEWEST = Version(37)  # the last version whose checks are known here


def evaluate(level: Level, version: Version, template: PodTemplate, *, newest: Version = NEWEST) -> list[Result]:
    """Why a pod of `template` is not allowed at `level`, in upstream's order; empty if it is.

    `newest` is the version of the cluster: an API server knows no checks of later versions, so `latest` and anything
    above mean its own. What it completes in a pod before judging it counts as there: `emptyDir` for a volume without
    source, host ports with `hostNetwork`, AppArmor fields from annotations.
    """
    if level is Level.PRIVILEGED:
        return []
    subject = Subject(template)
    results = (revision.evaluate(subject) for revision in checks(level, min(version, newest, NEWEST)).values())
    return [result for result in results if result is not None]


@cache
def checks(level: Level, version: Version) -> dict[str, Revision]:
    """The checks of `level` at `version` (up to NEWEST) by id: those of baseline, then those that restricted adds."""
    if level is Level.PRIVILEGED:
        return {}
    found = {check.id: (check, check.at(version)) for check in REGISTRY.values()}
    baseline = {key: revision for key, (check, revision) in found.items() if revision and check.level == Level.BASELINE}
    if level is Level.BASELINE:
        return baseline
    added = {key: revision for key, (check, revision) in found.items() if revision and check.level == level}
    overridden = {key for revision in added.values() for key in revision.overrides}
    return {key: revision for key, revision in baseline.items() if key not in overridden} | added
