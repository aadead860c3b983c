import pytest
from pydantic import ValidationError

from tests.support.injecting import only
from tests.support.policies import HEADER
from webhook import injections, rules
from webhook.admission.pipelines import load_policy, policy_model
from webhook.kit.settings import Action
from webhook.policy.document import API_VERSION, KIND, PolicyError


def test_defaults_have_every_enabled_rule_and_injection() -> None:
    policy = load_policy(None)
    assert {rule.id for rule, _, _ in policy.rules} == {
        name for name, rule in rules.REGISTRY.items() if rule.settings().action is not Action.OFF
    }
    assert {injection.id for injection, _ in policy.injections} == {
        name for name, injection in injections.REGISTRY.items() if injection.settings().enabled
    }


def test_empty_document_equals_the_defaults() -> None:
    assert load_policy(HEADER) == load_policy(None)


def test_settings_apply_to_their_rule() -> None:
    policy = load_policy(HEADER + "rules: {worker-count: {min: 3, max: 8}, images: {action: 'off'}}")
    settings = {rule.id: settings.model_dump() for rule, settings, _ in policy.rules}
    assert settings["worker-count"] == {"action": "deny", "min": 3, "max": 8}
    assert "images" not in settings


ON = {name for name, injection in injections.REGISTRY.items() if injection.settings().enabled}


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("injectOnly: null", ON),
        ("injectOnly: []", set()),
        ("injectOnly: [labels]", {"labels"}),
        ("injectOnly: [labels, istio]\ninjections: {istio: {enabled: false}}", {"labels"}),
    ],
)
def test_setting_called_inject_only_restricts_the_enabled_injections(text: str, used: set[str]) -> None:
    assert {injection.id for injection, _ in load_policy(HEADER + text).injections} == used


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected one mapping of kind MPIJobPolicy, found a list"),
        ("a\n---\nb", "expected one mapping of kind MPIJobPolicy, found a plain value"),
        ("apiVersion: policy.training.openshift.io/v1", "kind: is missing, write kind: MPIJobPolicy"),
        (HEADER.replace("v1", "v2"), "apiVersion: must be policy.training.openshift.io/v1 (it is "),
        (HEADER + "rules: {worker-count: {min: 3}", "line 3, column 8"),
        (HEADER + "injectOnly: labels", "line 3: injectOnly: must be a list: [labels]"),
        (HEADER + "injectOnly: [label]", 'line 3: injectOnly[0]: there is no "label"; did you mean labels?'),
        (HEADER + "injectOnly: [zzz]", 'line 3: injectOnly[0]: there is no "zzz"; `mpijob-webhook rules` lists'),
        (
            HEADER + "exemptions:\n- rules:\n  - gpus\n  - gpu\n  users: [a]\n  reason: r",
            'line 6: exemptions[0].rules[1]: there is no "gpu"; did you mean gpus?',
        ),
        (HEADER + "injections: {labels: {job: {'a b': c}}}", "injections.labels.job: a b: "),
        (
            HEADER + "injections: {labels: {pods: {training.kubeflow.org/job-name: c}}}",
            "training.kubeflow.org/ belongs to the MPI operator",
        ),
    ],
)
def test_broken_document_is_rejected_with_field_and_reason(text: str, message: str) -> None:
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


def test_defaults_are_valid() -> None:
    """The service uses defaults without validation."""
    model = policy_model()
    assert model.model_validate({"apiVersion": API_VERSION, "kind": KIND}) == model.model_construct()
    for entry in (*rules.REGISTRY.values(), *injections.REGISTRY.values()):
        unchecked = entry.settings.model_construct()
        assert entry.settings.model_validate(unchecked.model_dump(by_alias=True)) == unchecked


GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
TOO_LONG = "x" * 64
LABELS = [{"": "x"}, {"a b": "x"}, {"a": TOO_LONG}, {"a": 1}, {"a": "x y"}]
QUEUE = {"kueue.x-k8s.io/queue-name": "training"}
KUEUES = r"kueue\.x-k8s\.io/ belongs to Kueue: use the injections kueue-queue"
AMOUNTS = {"cpu": "1", "memory": "1Gi"}
VENDORS = [{}, {"resources": ["gpu"]}, *({"resources": [GPU], **more} for more in (
    {"present": "a b"}, {"product": "/x"}, {"taints": ["a b"]}, {"label": "x"}
))]  # fmt: skip
INVALID = {
    "gpu-nodes": [
        *({"nodeAffinity": value} for value in ("strongly", True)),
        *({"vendors": [vendor]} for vendor in VENDORS),
        {"vendors": [{"resources": [GPU]}] * 17},
    ],
    "image-pull-secrets": [{"secrets": [name]} for name in ("", "A", "a b", "a/b", "x" * 254)],
    "job-timeout": [{"default": value} for value in ("", "1 day", "0s", 86400)],
    "kueue-priority": [{"priorityClass": name} for name in ("a_b", "A", TOO_LONG)],
    "kueue-queue": [{"queue": name} for name in ("a_b", "A", TOO_LONG)],
    "labels": [
        {field: labels} for field in ("job", "pods") for labels in (*LABELS, {"training.kubeflow.org/job-name": "x"})
    ],
    "launcher-resources": [
        {"requests": AMOUNTS | {"cpu": "2"}},
        {"requests": AMOUNTS | {"cpu": "x"}},
        {"limits": AMOUNTS | {"cpu": "0"}},
        {"requests": {"cpu": "1"}},
        {"limits": AMOUNTS | {GPU: "1"}},
        {"when": "sometimes"},
    ],
    "networks": [{"networks": [name]} for name in ("", "a,b", "A", "a/b/c", "a@", '[{"name":"a"}]')],
    "node-selector": [{"labels": labels} for labels in (*LABELS, {"a/b/c": "x"})],
    "rdma": [
        *({"environment": names} for names in ({"1": ""}, {"A B": ""}, {"OMPI_MCA_mca_base_env_list": "A"})),
        *({"resource": name} for name in ("gpu", "a b/c", "rdma/*")),
        *({"hugepages": {EFA: amount}} for amount in ("1Mi", "x", "0")),
        {"perGpu": 1, "perPod": 1},
        {"perGpu": 0},
        {"perPod": 65},
        {"networks": ["a,b"]},
    ],
    "shared-memory": [{"size": size} for size in ("", "x", "0", "-1Gi", "1e1.5")],
    "topology": [{"keys": keys} for keys in (["a b"], [""], [5], [f"k{index}" for index in range(17)])],
    "volcano-queue": [{"queue": name} for name in ("a_b", "A")],
    "worker-readiness": [{"port": port} for port in (0, 65536, "ssh")],
}


@pytest.mark.parametrize(
    ("injection", "settings"), [(name, settings) for name, several in INVALID.items() for settings in several]
)
def test_invalid_setting_is_rejected(injection: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        only(injection, **settings)


@pytest.mark.parametrize(
    ("injection", "settings", "message"),
    [
        ("labels", {"job": QUEUE}, KUEUES),
        ("labels", {"pods": QUEUE}, KUEUES),
        *(
            ("tolerations", {"tolerations": [toleration]}, message)
            for toleration, message in (
                ({}, "without a key the operator must be Exists"),
                ({"value": "x"}, "without a key the operator must be Exists"),
                ({"key": "a b"}, 'the key "a b" contains " "'),
                ({"key": "a", "value": "b c"}, 'the value "b c" contains " "'),
                ({"key": "a", "operator": "Exists", "value": "b"}, "the operator Exists takes no value"),
                ({"key": "a", "operator": "Gt", "value": "1"}, "'Equal' or 'Exists'"),
                ({"key": "a", "effect": "NoRun"}, "'NoSchedule', 'PreferNoSchedule' or 'NoExecute'"),
                ({"key": "a", "tolerationSeconds": 3}, "tolerationSeconds is only for the effect NoExecute"),
                ({"key": "a", "seconds": 3}, "Extra inputs are not permitted"),
            )
        ),
    ],
)
def test_invalid_setting_is_rejected_with_a_reason(injection: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        only(injection, **settings)
