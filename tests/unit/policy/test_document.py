import pytest

from tests.support.policies import HEADER
from webhook import injections, rules
from webhook.admission.pipelines import load_policy, policy_model
from webhook.kit.settings import Action
from webhook.policy.document import API_VERSION, KIND, PolicyError


def test_the_defaults_hold_every_rule_and_injection() -> None:
    policy = load_policy(None)
    assert {rule.id for rule, _, _ in policy.rules} == {
        name for name, rule in rules.REGISTRY.items() if rule.settings().action is not Action.OFF
    }
    assert {found.id for found, _ in policy.injections} == {
        name for name, found in injections.REGISTRY.items() if found.settings().enabled
    }


def test_an_empty_document_is_the_defaults() -> None:
    assert load_policy(HEADER) == load_policy(None)


def test_settings_reach_their_rule() -> None:
    policy = load_policy(HEADER + "rules: {worker-count: {min: 3, max: 8}, images: {action: 'off'}}")
    settings = {rule.id: settings.model_dump() for rule, settings, _ in policy.rules}
    assert settings["worker-count"] == {"action": "deny", "min": 3, "max": 8}
    assert "images" not in settings


ON = {name for name, found in injections.REGISTRY.items() if found.settings().enabled}


@pytest.mark.parametrize(
    ("text", "at_work"),
    [
        ("injectOnly: null", ON),
        ("injectOnly: []", set()),
        ("injectOnly: [labels]", {"labels"}),
        ("injectOnly: [labels, istio]\ninjections: {istio: {enabled: false}}", {"labels"}),
    ],
)
def test_a_ceiling_on_all_injections(text: str, at_work: set[str]) -> None:
    assert {injection.id for injection, _ in load_policy(HEADER + text).injections} == at_work


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected one mapping of kind MPIJobPolicy, found a list"),
        ("a\n---\nb", "expected one mapping of kind MPIJobPolicy, found a mere value"),
        ("apiVersion: policy.training.openshift.io/v1", "kind: is missing, write kind: MPIJobPolicy"),
        (HEADER.replace("v1", "v2"), "apiVersion: must be policy.training.openshift.io/v1 (it is "),
        (HEADER + "rules: {worker-count: {min: 3}", "line 4, column 1"),
        (HEADER + "injectOnly: labels", "line 3: injectOnly: must be a list: [labels]"),
        (HEADER + "injectOnly: [label]", 'line 3: injectOnly[0]: there is no "label", but labels'),
        (HEADER + "injectOnly: [zzz]", 'line 3: injectOnly[0]: there is no "zzz"; `mpijob-webhook rules` lists'),
        (
            HEADER + "exemptions:\n- rules:\n  - gpus\n  - gpu\n  users: [a]\n  reason: r",
            'line 6: exemptions[0].rules[1]: there is no "gpu", but gpus',
        ),
        (HEADER + "injections: {labels: {job: {'a b': c}}}", "injections.labels.job: a b: "),
        (
            HEADER + "injections: {labels: {pods: {training.kubeflow.org/job-name: c}}}",
            "training.kubeflow.org/ belongs to the MPI operator",
        ),
    ],
)
def test_a_broken_document_is_refused_with_field_and_reason(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy(text)
    assert message in str(caught.value)


def test_each_fault_has_its_line() -> None:
    text = HEADER + "rules:\n  worker-count:\n    max: 0\n    most: 3\nexemptions:\n- rules: [gpus]\n  reason: r\n"
    with pytest.raises(PolicyError) as caught:
        load_policy(text)
    assert [(fault.field, fault.line) for fault in caught.value.faults] == [
        ("exemptions[0]", 8),
        ("rules.worker-count.max", 5),
        ("rules.worker-count.most", 6),
    ]
    assert str(caught.value).splitlines()[1].startswith("line 5: rules.worker-count.max: must be at least")


def test_every_setting_is_described() -> None:
    model = policy_model()
    for section in (*model.model_fields.values(),):
        assert section.description
    for entry in (*rules.REGISTRY.values(), *injections.REGISTRY.values()):
        for name, field in entry.settings.model_fields.items():
            assert field.description, f"{entry.id}.{name}"
        summary, _ = entry.documentation
        assert summary.endswith("."), entry.id
        assert entry.since


def test_the_defaults_are_valid() -> None:
    """They are taken as they are written, without being looked at."""
    model = policy_model()
    assert model.model_validate({"apiVersion": API_VERSION, "kind": KIND}) == model.model_construct()
    for entry in (*rules.REGISTRY.values(), *injections.REGISTRY.values()):
        unchecked = entry.settings.model_construct()
        assert entry.settings.model_validate(unchecked.model_dump(by_alias=True)) == unchecked
