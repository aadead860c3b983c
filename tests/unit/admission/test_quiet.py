"""A rule that found nothing in jobs of a spec is not asked about the next one, and no verdict is another for it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from tests.bench.replies import cases
from tests.bench.replies.record import _policy as policy_set
from tests.support.jobs import changed, request
from tests.support.samples import sample
from webhook.admission import pipelines, quiet
from webhook.api import review, written
from webhook.api.mpijob import MPIJob
from webhook.cluster.asked import MOST
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.kit.context import Context
from webhook.kit.settings import Action, RuleSettings
from webhook.policy.in_force import Policy, PolicySet, load_policy
from webhook.rules import Rule, Violation

TODAY = date(2026, 3, 2)
FAULT = Violation("spec", "is wrong", fix="Mend it.")
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"tier": "1"}}}


class Asked:
    """A policy with one rule, and how often that was asked."""

    def __init__(self, look: Callable[[MPIJob, Context], object], plugin: str = "") -> None:
        self.times = 0
        self._look = look
        rule = Rule(id="looking", settings=RuleSettings, check=self._check, since="0.1", plugin=plugin)
        self.policy = replace(load_policy(None), rules=((rule, RuleSettings(), Action.DENY),))

    def _check(self, job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        self.times += 1
        if self._look(job, ctx) is FAULT:
            yield FAULT

    def again(self, number: int = 0, view: ClusterView | None = None, **changes: Any) -> int:
        """How often it is asked about another job of the spec."""
        before = self.times
        fields = {path.replace("_", "."): value for path, value in changes.items()}
        job = changed({"metadata.name": f"job-{number}", "metadata.namespace": "team", **fields})
        validate(job, self.policy, view or NothingKnown())
        return self.times - before


def validate(job: Any, policy: Policy, view: ClusterView) -> pipelines.Decision:
    return pipelines.validate(request(job), policy=policy, view=view, today=TODAY)


def test_a_rule_that_found_nothing_is_asked_a_few_times_and_then_no_more() -> None:
    asked = Asked(lambda job, _: job.spec)
    assert [asked.again(number) for number in range(6)] == [1] * (quiet.TIMES - 1) + [2] + [0] * (6 - quiet.TIMES)


@pytest.mark.parametrize(
    "look",
    [
        lambda job, _: job.metadata.name,
        lambda job, _: job.metadata.generate_name,
        lambda job, _: job.metadata.uid,
        lambda job, _: job.metadata.namespace,
        lambda job, _: job.owned,
        lambda job, _: job.status,
        lambda _, ctx: ctx.username,
        lambda _, ctx: ctx.groups,
        lambda _, ctx: ctx.own_rules,
        lambda _, ctx: json.loads(bytes(ctx.document)),
        lambda _, ctx: ctx.closest_name("a", list),
        lambda *_: FAULT,
    ],
)  # fmt: skip
def test_a_rule_that_looks_at_what_may_be_another_is_always_asked(look: Callable[[MPIJob, Context], object]) -> None:
    asked = Asked(look)
    assert all(asked.again(number) for number in range(8))


@pytest.mark.parametrize("field", ["name", "generate_name", "namespace"])
def test_a_rule_that_looks_at_a_name_is_asked_about_other_names_alone(field: str) -> None:
    asked = Asked(lambda job, _: getattr(job.metadata, field))
    for _ in range(quiet.TIMES):
        asked.again(0)
    assert [asked.again(number) for number in (0, 1, 0, 0)] == [0, 1, 0, 0]
    assert asked.again(0, metadata_generateName="job-") == 1


def test_and_about_the_same_name_where_the_cluster_is_another() -> None:
    asked = Asked(lambda job, ctx: ctx.view.get(NAMESPACES, job.metadata.namespace))
    for _ in range(quiet.TIMES):
        asked.again(0, Snapshot([TEAM]))
    assert asked.again(0, Snapshot([TEAM])) == 0
    assert asked.again(0, Snapshot([TEAM | {"metadata": {"name": "team"}}])) == 1
    assert asked.again(0, Snapshot([TEAM])) == 0


class Changing(NothingKnown):
    """A view with a list that changes in place."""

    def __init__(self, length: int) -> None:
        self.list: dict[Any, Any] = {number: number for number in range(length)}

    def all(self, resource: Any) -> Any:
        return self.list


@pytest.mark.parametrize("length", [0, MOST - 1])
def test_a_list_that_a_rule_looked_at_has_to_be_the_same(length: int) -> None:
    asked, view = Asked(lambda _, ctx: ctx.view.all(NAMESPACES)), Changing(length)
    for number in range(quiet.TIMES):
        asked.again(number, view)
    assert asked.again(8, view) == 0
    view.list["more"] = 1
    assert asked.again(9, view) == 1


@pytest.mark.parametrize("found", [dict.fromkeys(range(MOST + 1)), {"a group": {"a": "b"}}])
def test_a_rule_that_looks_at_a_long_list_or_at_groups_is_always_asked(found: dict[Any, Any]) -> None:
    asked, view = Asked(lambda _, ctx: ctx.view.all(NAMESPACES)), Changing(0)
    view.list = found
    assert all(asked.again(number, view) for number in range(8))


def test_a_rule_of_a_plug_in_is_always_asked() -> None:
    asked = Asked(lambda job, _: job.spec, plugin="theirs")
    assert [asked.again(number) for number in range(8)] == [1] * 8


@pytest.mark.parametrize(
    "change",
    [
        {"metadata_labels": {"a": "b"}},
        {"metadata_annotations": {"a": "b"}},
        {"metadata_namespace": "other"},
        {"spec_slotsPerWorker": 3},
        {"view": Snapshot([])},
        {"view": Snapshot([TEAM | {"metadata": {"name": "team", "labels": {"tier": "2"}}}])},
    ],
)
def test_it_is_asked_again_where_something_is_another(change: dict[str, Any]) -> None:
    asked = Asked(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    for number in range(quiet.TIMES):
        asked.again(number, Snapshot([TEAM]))
    assert asked.again(8, Snapshot([TEAM])) == 0
    assert asked.again(9, **{"view": Snapshot([TEAM]), **change}) == 1


def test_it_is_asked_about_updates_and_under_another_policy() -> None:
    asked = Asked(lambda job, _: job.spec)
    for number in range(quiet.TIMES):
        asked.again(number)
    before = asked.times
    job = changed({"metadata.name": "job-9", "metadata.namespace": "team"})
    update = request(job, old=changed({"spec.slotsPerWorker": 9}, job))
    pipelines.validate(update, policy=asked.policy, view=NothingKnown(), today=TODAY)
    assert asked.times > before
    before = asked.times
    other = replace(asked.policy, admitted=asked.policy.admitted)
    validate(job, other, NothingKnown())
    assert asked.times == before + 1


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_long_labels_and_annotations_have_to_be_the_same_too(field: str) -> None:
    asked = Asked(lambda job, _: job.spec)
    for other in ("", "a"):
        texts = {"note": "x" * 10_000 + other}
        came = [asked.again(number, **{f"metadata_{field}": texts}) for number in range(quiet.TIMES + 1)]
        assert came == [1] * (quiet.TIMES - 1) + [2, 0]


def test_a_rule_is_always_asked_where_it_asks_the_cluster_for_much_or_a_name_is_long() -> None:
    def look(_: MPIJob, ctx: Context) -> None:
        for number in range(quiet.MOST_ASKED + 1):
            ctx.view.get(NAMESPACES, f"team-{number}")

    asked = Asked(look)
    assert all(asked.again(number) for number in range(8))
    asked = Asked(lambda job, _: job.spec)
    assert all(asked.again(metadata_generateName="x" * quiet.MOST_OF_NAMES) for _ in range(8))


@pytest.fixture(scope="module")
def drawn() -> tuple[list[PolicySet], list[Snapshot]]:
    """Policies and clusters."""
    return [policy_set(text) for text in cases.policies()], [Snapshot(found) for found in cases.clusters()]


@pytest.mark.parametrize("part", range(4))
def test_no_verdict_is_another_for_what_came_before(part: int, drawn: tuple[list[PolicySet], list[Snapshot]]) -> None:
    policies, views = drawn
    for number, case in enumerate(cases.cases(sample(160, 1600), policies=len(policies), clusters=len(views))):
        if number % 4 != part or case["old"] or not isinstance(case["job"].get("metadata"), dict):
            continue
        view = views[case["cluster"]]
        namespaced = view.get(NAMESPACES, str(case["job"]["metadata"].get("namespace")))
        policy = policies[case["policy"]].for_namespace(namespaced)
        for job in (*[case["job"]] * quiet.TIMES, *_alike(case["job"])):
            for other in views if job is not case["job"] else [view]:
                remembered = _reply(job, policy, other)
                kept, written.known._specs = written.known._specs, {}
                assert remembered == _reply(job, policy, other), case
                written.known._specs = kept


def _alike(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Others of the same spec."""
    metadata = job["metadata"]
    for change in (
        {"name": "x" * 60},
        {"name": "other", "uid": "u-9", "ownerReferences": [{"controller": True, "kind": "A", "name": "a"}]},
        {"generateName": "other-"},
        {"labels": {"kueue.x-k8s.io/queue-name": "missing"}},
        {"annotations": {"training.openshift.io/timeout": "400d", "training.openshift.io/exempt": "gpus,slots"}},
        {},
    ):
        yield job | {"metadata": metadata | change}


def _reply(job: Any, policy: Policy, view: ClusterView) -> bytes | str:
    try:
        return review.encode(validate(job, policy, view).response("u"))
    except review.ReviewError as error:
        return str(error)
