import gc
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.policies import HEADER, configmap, layer
from webhook.admission.policy_review import PolicyVerdict, verdict_on
from webhook.api import review
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.view import ABSENT
from webhook.policy.in_force import PolicySet
from webhook.policy.layers import Layer

NAMESPACES = [Namespace(name, {"kubernetes.io/metadata.name": name, "tier": name[:1]}) for name in ("a1", "b1")]
TODAY = datetime(2026, 11, 21, tzinfo=UTC)


def sent(new: Any, old: Any = None) -> review.AdmissionRequest:
    operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
    request = {"uid": "u", "operation": operation, "object": new, "oldObject": old}
    return review.decode(
        json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()
    )


def judged(
    request: review.AdmissionRequest, *layers: Layer, namespaces: list[Namespace] | None = None
) -> PolicyVerdict:
    return verdict_on(request, policies=PolicySet(layers), namespaces=namespaces, now=TODAY)


def verdict(text: str, *others: Layer, namespaces: list[Namespace] | None = NAMESPACES) -> PolicyVerdict:
    return judged(sent(configmap("p", HEADER + text)), *others, namespaces=namespaces)


def most_gpus(policies: PolicySet | None) -> object:
    assert policies is not None
    return policies.for_namespace(ABSENT).document.settings_of_rule("gpus").model_dump()["max"]


def test_verdict_on_a_valid_policy_has_the_policies_after_the_change() -> None:
    result = verdict("rules: {gpus: {max: 3}}", layer("p", "rules: {gpus: {max: 2}}"))
    assert result.response == review.AdmissionResponse(uid="u", allowed=True)
    assert most_gpus(result.after) == 3


def test_rejection_of_an_invalid_policy_has_field_and_value_and_line() -> None:
    result = verdict("mode: loud\nrules:\n  gpus: {max: many}")
    assert result.after is None
    response = result.response
    assert not response.allowed
    assert response.status is not None
    assert response.status.message == (
        'policy "p" was rejected:\n'
        'line 3: mode: must be enforce, warn or audit (it is "loud")\n'
        'line 5: rules.gpus.max: must be a whole number (it is "many")'
    )
    assert response.status.details is not None
    assert [cause.field for cause in response.status.details.causes] == [
        "data[policy.yaml].mode",
        "data[policy.yaml].rules.gpus.max",
    ]


@pytest.mark.parametrize("text", ["".join(f"k{i}: 1\n" for i in range(900)), "rules: " + "[" * 1000])
def test_rejected_policy_is_freed_immediately(text: str) -> None:
    """If the document were part of a reference cycle, Python would keep it in memory for minutes."""
    verdict(text)
    gc.collect()
    gc.disable()
    try:
        assert not verdict(text).response.allowed
        assert gc.collect() < 100
    finally:
        gc.enable()


@pytest.mark.parametrize("new", [configmap("p", None), {**configmap("p", None), "data": {"policy.yml": HEADER}}])
def test_policy_configmap_without_the_policy_key_is_rejected(new: dict[str, Any]) -> None:
    response = judged(sent(new)).response
    assert response.status is not None
    assert "the document: is missing: it belongs under the key policy.yaml of data" in response.status.message


def test_unrelated_configmap_is_admitted() -> None:
    result = judged(sent(configmap("p", "[", label="")))
    assert result.response.allowed
    assert result.after is None


@pytest.mark.parametrize("label", ["True", "yes", "false"])
def test_policy_label_with_a_value_other_than_true_is_reported(label: str) -> None:
    expected = f'this is not a policy: the label training.openshift.io/mpijob-policy is "{label}". Set it to "true".'
    result = judged(sent(configmap("p", "[", label=label)))
    assert (result.response.allowed, result.response.warnings) == (True, [expected])
    update = sent(configmap("p", "[", label=label), configmap("p", HEADER))
    assert judged(update, layer("p", "rules: {gpus: {max: 2}}")).response.warnings[1:] == [expected]


@pytest.mark.parametrize("new", [None, configmap("p", "[", label="")])
def test_other_policies_apply_after_a_policy_or_its_label_is_deleted(new: Any) -> None:
    layers = layer("p", "rules: {gpus: {max: 2}}"), layer("q", "rules: {gpus: {min: 1}}")
    result = judged(sent(new, configmap("p", HEADER)), *layers)
    assert result.response.warnings == ['policy "p" is removed: other policies or the defaults replace it']
    assert most_gpus(result.after) == 16


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "namespaces: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a1, c1]}]}",
            'namespaces: there is no namespace "c1"',
        ),
        ("namespaces: {matchLabels: {tier: c}}", "namespaces: the selector matches no namespace that exists now"),
        (
            "exemptions: [{rules: [gpus], users: [x], reason: r, expires: 2026-11-20}]",
            "exemptions[0]: it ended on 2026-11-20 and has no effect",
        ),
        (
            "exemptions: [{rules: [gpus], namespaces: [z], reason: r}]",
            'exemptions[0].namespaces: there is no namespace "z"',
        ),
        (
            "rules: {gpus: {max: 5}}",
            'rules.gpus.max: "other" has the same priority and a different value; "p" wins',
        ),
        (
            "priority: 1\nrules: {gpus: {min: 9}}",
            'with "other", "p" would be left out: min (9) is above max (8)',
        ),
    ],
)
def test_admitted_policy_gets_warnings(text: str, warning: str) -> None:
    assert verdict(text, layer("other", "rules: {gpus: {max: 8}}")).response.warnings == [warning]


def test_policies_that_never_share_a_namespace_are_not_compared() -> None:
    base = layer("base", "namespaces: {matchLabels: {tier: a}}\nrules: {gpus: {max: 8}}")
    assert verdict("namespaces: {matchLabels: {tier: b}}\nrules: {gpus: {max: 4}}", base).response.warnings == []


def test_missing_namespaces_are_not_reported_if_the_namespaces_of_the_cluster_are_unknown() -> None:
    text = "namespaces: {matchLabels: {tier: c}}\nexemptions: [{rules: [gpus], namespaces: [z], reason: r}]"
    assert verdict(text, namespaces=None).response.warnings == []


@pytest.mark.parametrize("data", [3, [], {"metadata": 3}, {"data": {"policy.yaml": 3}}])
def test_object_that_is_not_a_configmap_gets_no_verdict(data: Any) -> None:
    with pytest.raises(review.ReviewError):
        judged(sent(data))


def test_reply_to_a_policy_with_many_faults_is_limited() -> None:
    """Without a limit, the message for a policy of 225 KB had 5.9 MB."""
    long = "x" * 5_000
    result = verdict("rules: {" + ", ".join(f"{long}-{number}: {{max: 1}}" for number in range(40)) + "}")
    assert len(review.encode(result.response)) < 60_000
    many = verdict("rules: {" + ", ".join(f"unknown-{number}: 1" for number in range(900)) + "}")
    assert many.response.status is not None
    assert many.response.status.message.endswith("\n... and 850 more")
    assert len(review.encode(many.response)) < 60_000
