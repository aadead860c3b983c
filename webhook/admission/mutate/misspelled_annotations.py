"""Warnings about ignored keys: misspelt annotations, and labels that should be annotations."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from webhook.admission.limits import MAX_UNKNOWN_ANNOTATIONS
from webhook.api import annotations
from webhook.api.mpijob import MPIJob
from webhook.injections import Caution
from webhook.policy import exemptions
from webhook.policy.in_force import Policy

PREFIX: Final = "training.openshift.io/"
KNOWN: Final = frozenset({*annotations.OF_USERS, exemptions.EXEMPT, exemptions.REASON})
_NAMES: Final = [key.removeprefix(PREFIX) for key in sorted(KNOWN)]
_FIELDS: Final = {f"{PREFIX}log-retention": "spec.runPolicy.ttlSecondsAfterFinished"}
"""Keys that look like an annotation of the service, with the field to use instead."""
_WAITS: Final = frozenset(("launcher-wait", "worker-readiness"))
# Other programs may use the prefix, so only keys that are almost certainly typos cause a warning.
_ALIKE: Final = 0.75


def cautions(job: MPIJob, policy: Policy) -> dict[str, list[str]]:
    """Warnings by ignored key."""
    by_key: dict[str, list[str]] = {}
    for key in [key for key in _ours(job.annotations) if key not in KNOWN][:MAX_UNKNOWN_ANNOTATIONS]:
        near = get_close_matches(key.removeprefix(PREFIX)[:64], _NAMES, n=1, cutoff=_ALIKE)
        meant = _FIELDS.get(key) or (near and f"{PREFIX}{near[0]}")
        if meant:
            by_key[key] = [Caution(f"has no effect; did you mean {meant}?")]
    waits = job.annotations.get(annotations.WORKER_READINESS, "false") != "false"
    if waits and _WAITS.isdisjoint([injection.id for injection, _ in policy.injections]):
        by_key[annotations.WORKER_READINESS] = [Caution("has no effect, the policy has launcher-wait off")]
    for key in _ours(job.labels):
        if key in KNOWN:
            by_key.setdefault(key, [Caution("has no effect as a label, make it an annotation")])
    return by_key


def _ours(keys: Mapping[str, str]) -> list[str]:
    return [key for key in keys if key.startswith(PREFIX)]
