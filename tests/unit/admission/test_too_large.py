"""A job that is too large to judge: refused before anything else looks at it, whatever the policy says of the rule."""

from datetime import date
from typing import Any

import pytest

from tests.bench.replies.cases import clusters
from tests.support.hostile import SHAPES
from tests.support.jobs import REMOVE, changed, request
from tests.support.limit_ranges import limit_range
from tests.support.policies import HEADER
from tests.support.steps import calls, reviews
from webhook.admission import pipelines, too_large
from webhook.admission.pipelines import Decision, load_policy
from webhook.cluster.resources.limit_ranges import MAX_ENTRIES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.rules import REGISTRY

SPEC = "Worker.template.spec"
DEFAULTS = load_policy(None)
EXEMPT = 'exemptions: [{rules: ["*"], users: [alice], reason: because}]\n'


def policy(text: str) -> pipelines.Policy:
    return load_policy(HEADER + text)


def with_action(action: str) -> pipelines.Policy:
    return policy(f"rules: {{job-size: {{action: {action}}}}}")


def with_containers(count: int, **metadata: Any) -> dict[str, Any]:
    """Every container is one fault for other rules."""
    containers = [{"name": f"c{number}", "image": "not an image"} for number in range(count)]
    return changed({f"{SPEC}.containers": containers, "metadata.annotations": metadata})


def validate(job: Any, policy: pipelines.Policy = DEFAULTS, **fields: Any) -> Decision:
    return pipelines.validate(request(job, **fields), policy=policy, view=NothingKnown(), today=date.min)


def mutate(job: Any, policy: pipelines.Policy = DEFAULTS, **fields: Any) -> Decision:
    return pipelines.mutate(request(job, **fields), policy=policy, view=NothingKnown())


def rules(decision: Decision) -> set[str]:
    return {finding.rule for finding in [*decision.denied, *decision.warned, *decision.audited]}


def test_no_other_rule_looks_at_it() -> None:
    assert validate(with_containers(51)).message == (
        'MPIJob "train" is refused, 1 problem to mend:\n'
        "1. spec.mpiReplicaSpecs[Worker].template.spec.containers: too large to judge: 51 containers, at most 50"
        " [job-size]\n"
        "   Stay within that, or ask your administrator about maxContainers of the rule job-size."
    )
    assert "images" in rules(validate(with_containers(50)))


def test_nothing_is_injected() -> None:
    assert mutate(with_containers(51)).skipped == "too large to judge"
    assert mutate(with_containers(51)).patch == []
    assert mutate(with_containers(50)).patch != []


@pytest.mark.parametrize("action", ["warn", "audit", "off"])
def test_a_weaker_action_lets_the_other_rules_look_up_to_the_ceiling(action: str) -> None:
    within = validate(with_containers(51), with_action(action))
    assert "images" in {finding.rule for finding in within.denied}
    assert ("job-size" in rules(within)) == (action != "off")
    assert mutate(with_containers(51), with_action(action)).patch != []
    beyond = validate(with_containers(201), with_action(action))
    assert [finding.violation.message for finding in beyond.denied] == [
        "too large to judge: 201 containers, at most 200"
    ]
    assert mutate(with_containers(201), with_action(action)).patch == []


def test_a_policy_may_raise_a_bound() -> None:
    raised = policy("rules: {job-size: {maxContainers: 60}}")
    assert "job-size" not in rules(validate(with_containers(60), raised))
    assert rules(validate(with_containers(61), raised)) == {"job-size"}


@pytest.mark.parametrize(("mode", "field"), [("warn", "warned"), ("audit", "audited")])
def test_where_every_job_is_let_through_this_one_is_too(mode: str, field: str) -> None:
    decision = validate(with_containers(201), policy(f"mode: {mode}"))
    assert decision.allowed
    assert [finding.rule for finding in getattr(decision, field)] == ["job-size"]


def test_no_exemption_holds() -> None:
    asked = {"training.openshift.io/exempt": "*", "training.openshift.io/exempt-reason": "because"}
    job = with_containers(51, **asked)
    assert not validate(job, policy(EXEMPT)).allowed
    decision = pipelines.validate(
        request(job), policy=DEFAULTS, view=NothingKnown(), granted={"job-size": True}, today=date.min
    )
    assert not decision.allowed
    assert decision.requested == []
    assert validate(with_containers(51), policy(EXEMPT + "rules: {job-size: {action: warn}}")).allowed


class TestUpdates:
    def test_of_a_job_that_grows(self) -> None:
        assert rules(validate(with_containers(51), old=with_containers(50))) == {"job-size"}

    def test_of_a_job_that_was_too_large_before(self) -> None:
        stored = with_containers(300)
        resumed = changed({"spec.runPolicy.suspend": True}, stored)
        decision = validate(resumed, old=stored)
        assert decision.allowed
        assert decision.skipped == too_large.AS_STORED

    @pytest.mark.parametrize("field", ["activeDeadlineSeconds", "schedulingPolicy", "cleanPodPolicy"])
    def test_its_limits_stay_as_they_are(self, field: str) -> None:
        other = changed({f"spec.runPolicy.{field}": 10**9}, with_containers(300))
        assert not validate(other, old=with_containers(300)).allowed

    @pytest.mark.parametrize("count", [299, 300, 301])
    def test_its_pods_stay_as_they_are(self, count: int) -> None:
        other = changed({f"{SPEC}.hostNetwork": True}, with_containers(count))
        assert not validate(other, old=with_containers(300)).allowed

    def test_it_may_not_grow_elsewhere(self) -> None:
        labels = {f"l{number}": "v" for number in range(101)}
        assert not validate(
            changed({"metadata.labels": labels}, with_containers(300)), old=with_containers(300)
        ).allowed

    def test_it_may_become_small_enough(self) -> None:
        """The stored job says nothing of what the new one may be, because nobody looks at it."""
        decision = validate(with_containers(1), old=with_containers(300))
        assert rules(decision) >= {"images"}
        assert "job-size" not in rules(decision)

    def test_one_within_the_ceiling_is_known_as_any_stored_job(self) -> None:
        assert "images" not in rules(validate(with_containers(50), old=with_containers(60)))

    def test_one_that_goes_is_let_go(self) -> None:
        deleted = changed({"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"}, with_containers(300))
        assert validate(deleted, old=with_containers(300)).allowed


@pytest.mark.parametrize("missing", ["spec", "spec.mpiReplicaSpecs"])
def test_pods_of_a_job_without_any(missing: str) -> None:
    assert too_large.changes_only_suspend(request(changed({missing: REMOVE}), old=changed({missing: REMOVE})))
    assert not too_large.changes_only_suspend(request(changed({missing: REMOVE}), old=changed()))


CEILINGS = policy("rules: {job-size: {action: 'off'}}")
ALONE = policy(
    "rules: {"
    + ", ".join(f"{rule}: {{action: 'off'}}" for rule in REGISTRY if rule != "job-size")
    + "}\ninjectOnly: []"
)
VIEWS = [NothingKnown(), Snapshot(clusters()[1])]
SMALL, BEYOND = 2_500, 300_000
# What has no bound of its own, or none that so many bytes are far beyond.
UNCOUNTED = {name for name in SHAPES if name.startswith("deep")} | {
    "a list of injections",
    "exports and variables",
    "owners",
    "pod affinity terms",
    "sysctls",
    "unknown fields",
    "words with blanks",
}
LARGE = sorted(SHAPES.keys() - UNCOUNTED)


@pytest.mark.parametrize("view", VIEWS, ids=["nothing known", "a cluster"])
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_job_is_no_more_than_twice_the_work(shape: str, view: ClusterView) -> None:
    """As far as the ceilings allow; some hundred calls are for any job."""
    make = SHAPES[shape]
    reviews(make(SMALL), CEILINGS, view)
    assert calls(make(2 * SMALL), CEILINGS, view) < 2.6 * calls(make(SMALL), CEILINGS, view)


@pytest.mark.parametrize("shape", LARGE)
def test_a_job_that_is_too_large_costs_nothing_for_further_rules(shape: str) -> None:
    job = SHAPES[shape](BEYOND)
    reviews(job, ALONE, VIEWS[1])
    assert rules(validate(job)) == {"job-size"}
    assert calls(job, DEFAULTS, VIEWS[1]) < calls(job, ALONE, VIEWS[1]) + 100


# Of four reviews. Most are of `len` and its like, with some 50 ns; each review has 250 ms.
MOST_CALLS = 3_000_000


@pytest.mark.parametrize("shape", sorted(UNCOUNTED))
def test_no_megabyte_takes_more_than_so_many_steps(shape: str) -> None:
    assert calls(SHAPES[shape](900_000), DEFAULTS, VIEWS[1]) < MOST_CALLS


@pytest.mark.parametrize("item", ["Container", "Pod"])
def test_the_widest_limit_range_takes_only_so_many_steps(item: str) -> None:
    """Of containers each name counts twice: as a bound, and as the default that comes of it."""
    names = MAX_ENTRIES // 2 if item == "Container" else MAX_ENTRIES
    most = {f"x.example.com/r{number}": "2" for number in range(names)}
    wide = {**limit_range("wide"), "metadata": {"name": "wide", "namespace": "team-0000"}}
    wide["spec"] = {"limits": [{"type": item, "min": most, "max": most}]}
    job = with_containers(50)
    job["spec"]["mpiReplicaSpecs"]["Launcher"] = job["spec"]["mpiReplicaSpecs"]["Worker"]
    assert calls(job, DEFAULTS, Snapshot([*clusters()[1], wide])) < MOST_CALLS
