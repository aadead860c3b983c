"""What remembers decisions, with one injection or rule that counts how often it is asked."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from msgspec import structs

from tests.support.jobs import changed, request
from webhook.admission import pipelines
from webhook.admission.decided_before import DecidedBefore
from webhook.api import review
from webhook.api.mpijob import MPIJob
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.injections import Injection
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import Action, InjectionSettings, RuleSettings
from webhook.policy.in_force import Policy, load_policy
from webhook.rules import Rule, Violation

TODAY = date(2026, 3, 2)
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"tier": "1"}}}
OTHER_TEAM = TEAM | {"metadata": {"name": "team", "labels": {"tier": "2"}}}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "pods", "namespace": "team"},
    "spec": {"hard": {"pods": "100"}},
    "status": {"hard": {"pods": "100"}, "used": {"pods": "0"}},
}
JOB = changed({"metadata.namespace": "team"})


class Asked:
    """A policy with one injection or rule, what remembers for it, and how often that was asked."""

    hook = "mutate"

    def __init__(self, look: Callable[[MPIJob, Context], object] = lambda *_: None, plugin: str = "") -> None:
        self.times = 0
        self.before = DecidedBefore()
        self.today = TODAY
        self._look = look
        self.policy = self._policy(plugin)

    def _policy(self, plugin: str) -> Policy:
        entry = Injection("asked", InjectionSettings, self._inject, since="0.1", plugin=plugin)
        return replace(load_policy(None), injections=((entry, InjectionSettings()),))

    def _inject(self, job: MPIJob, _: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
        self.times += 1
        self._look(job, ctx)
        patch.add(("metadata", "labels", "asked"), job.metadata.name)
        yield "asked"

    def known(self, view: ClusterView | None = None) -> None:
        """The job has come so often that it is known."""
        while self.again(view=view):
            pass

    def again(self, job: Any = JOB, view: ClusterView | None = None, **fields: Any) -> int:
        """How often it is asked about the job."""
        times = self.times
        asked, view = request(job, **fields), view or NothingKnown()
        how = {"today": self.today} if self.hook == "validate" else {}
        decision = decided(self.hook, self.before, asked, self.policy, view, **how)
        found, self.times = self.times - times, times
        assert reply(decision) == reply(decided(self.hook, pipelines, asked, self.policy, view, **how))
        return found


class AskedRule(Asked):
    """The same with a rule."""

    hook = "validate"

    def _policy(self, plugin: str) -> Policy:
        rule = Rule("asked", RuleSettings, self._check, since="0.1", plugin=plugin)
        return replace(load_policy(None), rules=((rule, RuleSettings(), Action.DENY),), injections=())

    def _check(self, job: MPIJob, _: RuleSettings, ctx: Context) -> Iterator[Violation]:
        self.times += 1
        self._look(job, ctx)
        yield Violation("spec", f"is wrong in {job.metadata.name}", fix="Mend it.")


hooks = pytest.mark.parametrize("hook", ["mutate", "validate"])
both = pytest.mark.parametrize("kind", [Asked, AskedRule])


def decided(
    hook: str, before: Any, asked: review.AdmissionRequest, policy: Policy, view: ClusterView, **how: Any
) -> pipelines.Decision:
    """By the pipelines, or by what remembers them."""
    if hook == "validate":
        how = {"today": TODAY, **how}
    decision: pipelines.Decision = getattr(before, hook)(asked, policy=policy, view=view, **how)
    return decision


def reply(decision: pipelines.Decision) -> bytes:
    return review.encode(decision.response("u"))


def same_reply(
    hook: str, before: DecidedBefore, asked: review.AdmissionRequest, policy: Policy, view: ClusterView
) -> None:
    """The same as without memory, however often it comes."""
    expected = said(hook, pipelines, asked, policy, view)
    for _ in range(3):
        assert said(hook, before, structs.replace(asked), policy, view) == expected, bytes(asked.object)


def said(hook: str, by: Any, asked: review.AdmissionRequest, policy: Policy, view: ClusterView) -> Any:
    try:
        decision = decided(hook, by, asked, policy, view)
    except review.ReviewError as error:
        return str(error)
    decision.policy = policy.identity
    kept = structs.asdict(decision)
    for name in ("patch", "document", "said"):
        del kept[name]
    return reply(decision), kept
