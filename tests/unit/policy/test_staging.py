"""What only warns until a day, or outside of a share of the namespaces."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from tests.support.jobs import NO_TOKEN, changed, request
from tests.support.policies import HEADER, layer
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.admission.pipelines import validate
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.view import ABSENT, UNKNOWN, NothingKnown
from webhook.kit.settings import Action
from webhook.policy import document, layers, staging
from webhook.policy.document import PolicyError
from webhook.policy.in_force import Policy, PolicySet, load_policies, load_policy, policy_model
from webhook.policy.layers import Layer
from webhook.rules import Violation

DAY = datetime(2027, 2, 1, tzinfo=UTC)
BEFORE = DAY - timedelta(seconds=1)
TEAM = Namespace("team-a", {})
WARN = layer("warn", "mode: warn\nenforceFrom: 2027-02-01")
NAMES = [f"team-{number}" for number in range(500)]


def policy_at(now: datetime, *found: Layer, namespace: Namespace = TEAM) -> Policy:
    return PolicySet(found).at(now).for_namespace(namespace)


def verdict(policy: Policy) -> Decision:
    job = request(
        changed({"Worker.replicas": 1, "Launcher.template.spec.containers.0.command": ["mpirun", "python"], **NO_TOKEN})
    )
    return validate(job, policy=policy, view=NothingKnown(), today=date(2027, 1, 1))


def drawn(*found: Layer, now: datetime = DAY) -> set[str]:
    """The namespaces in which worker-count denies."""
    policies = PolicySet(found).at(now)
    return {name for name in NAMES if denies(policies.for_namespace(Namespace(name, {})))}


def denies(policy: Policy) -> bool:
    return policy.action("worker-count") is Action.DENY


def test_a_mode_ends_at_its_moment() -> None:
    policies = PolicySet([WARN])
    assert not denies(policies.for_namespace(TEAM))
    assert not denies(policies.at(BEFORE).for_namespace(TEAM))
    assert denies(policies.at(DAY).for_namespace(TEAM))
    assert not denies(policies.at(DAY).at(BEFORE).for_namespace(TEAM)), "a clock that is set back"
    assert policies.at(DAY).for_namespace(TEAM).document.ceiling is Action.DENY


def test_what_is_compiled_for_one_time_is_not_what_holds_at_another() -> None:
    policies = PolicySet([WARN])
    before, after = policies.at(BEFORE), policies.at(DAY)
    assert before.for_namespace(TEAM) is not after.for_namespace(TEAM)
    assert policies.at(BEFORE) is before
    assert policies.at(DAY + timedelta(days=400)) is after
    assert PolicySet([layer("plain", "mode: warn")]).at(DAY).layers[0].name == "plain"


def test_the_warning_says_when_the_job_will_be_refused() -> None:
    (warned,) = verdict(policy_at(BEFORE, WARN)).warned
    assert warned.warning == (
        "spec.mpiReplicaSpecs[Worker].replicas: 1 worker, at least 2 required [worker-count, refused from 2027-02-01]"
    )
    assert len(warned.warning) <= 120
    assert warned.sentence.endswith("[worker-count, refused from 2027-02-01]")
    (denied,) = verdict(policy_at(DAY, WARN)).denied
    assert denied.sentence.endswith("[worker-count]")


def test_a_long_warning_keeps_the_day() -> None:
    path = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources"
    told = Finding("gpus", Violation(path, "x " * 90, "y"), "2027-02-01T08:00:00+01:00").warning
    assert len(told) == 120
    assert told.endswith("... [gpus, refused from 2027-02-01T08:00:00+01:00]")


def test_what_only_warns_anyway_names_no_day() -> None:
    policy = policy_at(BEFORE, WARN, layer("mild", "priority: 1\nrules: {worker-count: {action: warn}}"))
    (warned,) = verdict(policy).warned
    assert warned.sentence.endswith("[worker-count]")


def test_an_audited_finding_has_the_day_in_the_audit_log() -> None:
    decision = verdict(policy_at(BEFORE, layer("audit", "mode: audit\nenforceFrom: 2027-02-01")))
    assert decision.response("u").audit_annotations["audit-violations"].endswith("refused from 2027-02-01]")
    assert decision.warnings == []


def test_staged_rules_alone_are_weakened() -> None:
    found = layer("some", "staged: [{rules: [worker-count], enforceFrom: 2027-02-01}]")
    policy = policy_at(BEFORE, found)
    assert policy.action("worker-count") is Action.WARN
    assert policy.action("gpus") is Action.DENY
    assert policy.refused_from == {"worker-count": "2027-02-01"}
    assert denies(policy_at(DAY, found))


def test_the_last_of_several_stages_counts() -> None:
    found = layer(
        "some",
        "staged:\n"
        "- {rules: [worker-count], until: audit, enforceFrom: 2027-02-01}\n"
        "- {rules: ['*'], enforceFrom: '2027-03-01T00:00:00+01:00'}",
    )
    assert policy_at(BEFORE, found).action("worker-count") is Action.AUDIT
    assert policy_at(DAY, found).action("worker-count") is Action.WARN
    assert policy_at(BEFORE, found).refused_from["worker-count"] == "2027-03-01T00:00:00+01:00"
    assert denies(policy_at(datetime(2027, 2, 28, 23, tzinfo=UTC), found))


def test_staged_rules_of_all_documents_add_up_and_none_overrules_another() -> None:
    one = layer("a", "staged: [{rules: [worker-count], enforceFrom: 2027-02-01}]")
    two = layer("b", "priority: 9\nstaged: [{rules: [gpus], enforceFrom: 2027-02-01}]")
    policy = policy_at(BEFORE, one, two)
    assert (policy.action("worker-count"), policy.action("gpus")) == (Action.WARN, Action.WARN)
    assert layers.ties([one, layer("c", "staged: [{rules: [gpus], enforceShare: 1}]")]) == []


def test_an_end_belongs_to_the_mode_beside_it() -> None:
    """A document of higher priority that sets the mode has the last word: no day of another one ends it."""
    panic = layer("panic", "priority: 9\nmode: audit")
    policy = policy_at(DAY, WARN, panic)
    assert policy.document.ceiling is Action.AUDIT
    assert policy.sources == {"mode": "panic"}
    assert policy_at(DAY, layer("low", "priority: -1\nmode: audit"), WARN).document.ceiling is Action.DENY


def test_a_share_is_about_that_large_and_only_grows() -> None:
    shares = [drawn(layer("warn", f"mode: warn\nenforceShare: {share}")) for share in (0, 1, 10, 25, 50, 99, 100)]
    assert [small <= large for small, large in pairwise(shares)] == [True] * 6
    assert (shares[0], shares[-1]) == (set(), set(NAMES))
    assert 30 < len(shares[2]) < 70
    assert 200 < len(shares[4]) < 300


def test_who_is_drawn_never_changes() -> None:
    """A namespace that was enforced yesterday must be today, in every replica and every version."""
    assert staging.position("warn", "team-a") >> 56 == 0xE5
    assert sorted(drawn(layer("warn", "mode: warn\nenforceShare: 1"))) == ["team-183", "team-211"]
    assert min(drawn(layer("other", "mode: warn\nenforceShare: 1"))) == "team-20"


def test_policies_draw_each_for_itself() -> None:
    one, two = (drawn(layer(name, "mode: warn\nenforceShare: 50")) for name in ("a", "b"))
    assert one != two


def test_with_a_day_and_a_share_it_is_the_share_from_that_day_on() -> None:
    found = layer("warn", "mode: warn\nenforceFrom: 2027-02-01\nenforceShare: 50")
    some = drawn(found)
    assert 200 < len(some) < 300
    assert drawn(found, now=BEFORE) == set()
    inside, outside = min(some), min(set(NAMES) - some)
    assert policy_at(BEFORE, found, namespace=Namespace(inside, {})).refused_from["worker-count"] == "2027-02-01"
    assert policy_at(BEFORE, found, namespace=Namespace(outside, {})).refused_from == {}


@pytest.mark.parametrize("namespace", [UNKNOWN, ABSENT])
def test_a_namespace_that_is_not_known_is_in_no_share(namespace: object) -> None:
    found = [layer("warn", "mode: warn\nenforceShare: 99")]
    assert not denies(PolicySet(found).at(DAY).for_namespace(namespace))  # type: ignore[arg-type]
    whole = [layer("warn", "mode: warn\nenforceShare: 100")]
    assert denies(PolicySet(whole).at(DAY).for_namespace(namespace))  # type: ignore[arg-type]


def test_a_file_for_every_namespace() -> None:
    text = HEADER + "namespaces: {matchLabels: {a: b}}\nmode: warn\nenforceFrom: 2027-02-01"
    assert not denies(load_policy(text))
    assert denies(load_policies(text).at(DAY).for_any_namespace("team-a"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "enforceFrom: 2027-02-01",
            "the document: enforceFrom and enforceShare need mode: warn or mode: audit, which holds until then",
        ),
        (
            "mode: enforce\nenforceShare: 5",
            "the document: enforceFrom and enforceShare need mode: warn or mode: audit, which holds until then",
        ),
        (
            "mode: warn\nenforceFrom: 2027-02-01T08:00",
            "line 4: enforceFrom: names no time zone: write 2027-02-01T08:00Z for UTC, or its distance as in"
            ' 2027-02-01T08:00+01:00 (it is "2027-02-01T08:00")',
        ),
        (
            "mode: warn\nenforceFrom: 7",
            "line 4: enforceFrom: is neither a day such as 2027-02-01 nor a time such as 2027-02-01T08:00:00Z"
            " (it is 7)",
        ),
        ("mode: warn\nenforceShare: 101", "line 4: enforceShare: must be at most 100 (it is 101)"),
        ("mode: warn\nenforceShare: 25%", 'line 4: enforceShare: must be a whole number (it is "25%")'),
        (
            "staged: [{rules: [gpus]}]",
            "line 3: staged[0]: needs enforceFrom or enforceShare: without one it would never end",
        ),
        (
            "staged: [{rules: [gpu], enforceShare: 5}]",
            'line 3: staged[0].rules[0]: there is no "gpu", but gpus',
        ),
    ],
)
def test_broken_stages(text: str, fault: str) -> None:
    with pytest.raises(PolicyError) as error:
        document.load(HEADER + text, policy_model())
    assert str(error.value) == fault


@pytest.mark.parametrize("named", ["custom/short", "custom", "'*'"])
def test_an_own_rule_is_staged_by_its_name_and_among_all_own_rules(named: str) -> None:
    own = "rules: {custom: [{id: short, expression: 'true', message: Be short., action: deny}]}"
    found = layer("own", f"{own}\nstaged: [{{rules: [{named}], enforceFrom: 2027-02-01}}]")
    policy = policy_at(BEFORE, found)
    assert (policy.action("custom/short"), policy.refused_from["custom/short"]) == (Action.WARN, "2027-02-01")
    assert policy_at(DAY, found).action("custom/short") is Action.DENY
