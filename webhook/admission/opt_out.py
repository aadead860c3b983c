"""Which injections a job goes without, by the annotation `training.openshift.io/skip: topology,rdma` on it."""

from collections.abc import Iterator

from webhook import PROGRAM, injections
from webhook.api import annotations
from webhook.api.mpijob import MPIJob
from webhook.injections import Caution
from webhook.kit.settings import Action
from webhook.policy.in_force import Policy

# Room for every injection there is; what is beyond is not read.
MAX_LENGTH = 1024
MAX_SHOWN = 3


def asked(job: MPIJob) -> tuple[str, ...]:
    """The ids in the job's annotation, each once."""
    parts = job.annotations.get(annotations.SKIP, "")[:MAX_LENGTH].split(",")
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def honoured(job: MPIJob, policy: Policy) -> frozenset[str]:
    """The injections that leave the job alone: those asked for, without those that the policy insists on."""
    ids = asked(job)
    return frozenset(ids).difference(_kept(policy)) if ids else frozenset()


def cautions(job: MPIJob, policy: Policy) -> Iterator[Caution]:
    """What was asked for in vain."""
    ids = asked(job)
    if not ids:
        return
    if unknown := [entry for entry in ids if entry not in injections.REGISTRY]:
        yield Caution(f"no injection is called {_shown(unknown)}; `{PROGRAM} rules` lists them")
    kept = _kept(policy)
    if refused := [entry for entry in ids if entry in kept]:
        yield Caution(f"the policy has no job go without {_shown(refused)}")


def _kept(policy: Policy) -> frozenset[str]:
    return frozenset(
        injection.id
        for injection, settings in policy.injections
        if not settings.skippable or settings.required is not Action.OFF
    )


def _shown(ids: list[str]) -> str:
    shown = ", ".join(annotations.quoted(entry) for entry in ids[:MAX_SHOWN])
    return f"{shown} and {len(ids) - MAX_SHOWN} more" if len(ids) > MAX_SHOWN else shown
