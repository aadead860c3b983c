"""Warnings about values that were injected or could not be injected."""

import copy

import pytest

from tests.support.injecting import DEFAULTS, mpijob, only
from tests.support.injecting import mutate as mutated
from tests.support.policies import HEADER
from webhook.admission.decision import Decision
from webhook.admission.limits import MAX_WARNINGS
from webhook.admission.messages import Finding
from webhook.admission.pipelines import load_policy
from webhook.injections import Caution, Hint, Injection, Note
from webhook.kit.importance import Importance
from webhook.kit.settings import Action, InjectionSettings
from webhook.policy.in_force import Policy
from webhook.rules import Violation


def saying(name, *notes, adds=True, importance=Importance.HARMS):
    def inject(job, settings, ctx, patch):
        if adds:
            patch.add(("metadata", "labels", name), "")
        yield from notes

    return Injection(id=name, settings=InjectionSettings, inject=inject, since="0.1", importance=importance)


def warnings(*entries, how="one-line"):
    document = load_policy(f"{HEADER}injectionWarnings: {how}").document
    decision = mutated(mpijob(), Policy(document, (), tuple((entry, InjectionSettings()) for entry in entries)))
    return decision.warnings


ENTRIES = (
    saying("a", "did this"),
    saying("b", Note("did that for a day", brief="24h"), Caution("could not do the other")),
    saying("c", "nothing to do, but look here", adds=False),
    saying("d"),
    saying("e", adds=False),
)
HINT = Hint("look at that field")
CAUTIONS = ["b: could not do the other", "c: nothing to do, but look here"]
ONE = "injected: b 24h, a, d (kubectl get mpijob NAME -o yaml; mpijob-webhook explain NAME)"


@pytest.mark.parametrize(
    ("how", "expected"),
    [("one-line", [ONE]), ("each", ["a: did this", "b: did that for a day"]), ("none", [])],
)
def test_policy_sets_the_form_of_warnings(how, expected):
    assert warnings(*ENTRIES, how=how) == CAUTIONS + expected


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (
            "one-line",
            ["injected: a (kubectl get mpijob NAME -o yaml; mpijob-webhook explain NAME); look at that field"],
        ),
        ("each", ["a: did this", "b: look at that field"]),
        ("none", []),
    ],
)
def test_hint_is_reported_together_with_injections(how, expected):
    assert warnings(saying("a", "did this"), saying("b", HINT, adds=False), how=how) == expected


def test_no_warning_if_nothing_was_injected():
    assert warnings(saying("e", adds=False)) == []
    assert warnings(saying("e", HINT, adds=False)) == []


def test_line_of_injections_is_the_first_warning_to_be_dropped():
    cautions = [Caution(f"no {number}") for number in range(MAX_WARNINGS)]
    expected = warnings(saying("a", *cautions))
    assert expected == [*(f"a: no {number}" for number in range(MAX_WARNINGS - 1)), "... and 2 more warnings"]


def test_warnings_of_rules_precede_warnings_of_injections():
    decision = Decision(told={"a": ["did this", Caution("not that")]}, authors=["a"], injection_warnings="each")
    decision.add(Finding("slots", Violation("spec.slotsPerWorker", "is bad", fix="Mend it.")), Action.WARN)
    assert decision.warnings == ["spec.slotsPerWorker: is bad. Mend it. [slots]", "a: not that", "a: did this"]


def finding(rule, *, advisory=False):
    return Finding(rule, Violation("spec", "is bad", fix="Mend it.", advisory=advisory))


def test_worst_finding_is_first():
    decision = Decision()
    for each in ("name-length", "rank-environment", "another", "ssh-paths", "clean-pod-policy", "images"):
        decision.add(finding(each), Action.WARN)
    decision.add(finding("gpus", advisory=True), Action.WARN)
    decision.put_worst_first()
    ids = [each.rule for each in decision.warned]
    assert ids == ["ssh-paths", "images", "gpus", "rank-environment", "another", "name-length", "clean-pod-policy"]


def test_least_important_warnings_are_dropped():
    decision = Decision()
    for number in range(12):
        path = f"spec.number{number}"
        decision.add(Finding("name-length", Violation(path, "is long", fix="Mend it.")), Action.WARN)
    decision.add(finding("ssh-paths"), Action.WARN)
    decision.put_worst_first()
    assert decision.warnings[0] == "spec: is bad. Mend it. [ssh-paths]"
    assert decision.warnings[-1] == "... and 4 more warnings"


def test_worst_caution_is_first():
    decision = Decision(told={"istio": [Caution("style")], "rdma": [Caution("none")], "launcher-resources": ["hint"]})
    assert decision.warnings == ["launcher-resources: hint", "rdma: none", "istio: style"]


def test_each_call_of_the_webhook_reports_only_the_injections_of_that_call():
    first = mutated(mpijob(), DEFAULTS)
    assert [line for line in first.warnings if line.startswith("injected: ")]
    other = copy.deepcopy(first.document)
    other["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append({"name": "log", "image": "a:1"})
    again = mutated(other, DEFAULTS)
    assert again.patch, "the new container gets injections too"
    assert [line[:30] for line in again.warnings] == ["injected: security-context; a "]
    later = mutated(first.document, only("image-pull-secrets", secrets=["ours"]))
    assert later.warnings == ["image-pull-secrets: added imagePullSecrets ours"]
