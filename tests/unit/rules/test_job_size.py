"""How large a job may be, before it is refused without a look."""

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from tests.support.any_job import Json, any_job
from tests.support.jobs import GOOD
from tests.support.rule_checks import found, run, violations
from tests.support.strategies import COMPLETE, PROPERTY
from webhook.rules import CauseReason, Violation
from webhook.rules.job_size import CEILING, RULE, Settings

SPEC = "Worker.template.spec"
CONTAINER = f"{SPEC}.containers.0"
AT = "spec.mpiReplicaSpecs[Worker].template"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
KEYS = {f"k{number}": "v" for number in range(9)}
CONFIG_MAPS = [{"configMap": {"name": "a"}}] * 6
TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a", "b"]}], "matchFields": [{"key": "a"}]}
POD_TERM = {"topologyKey": "a", "namespaces": ["x", "y"]}


def claim(**resources: Any) -> Json:
    return {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": resources}}}}


def node_terms(terms: Any) -> Json:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def test_the_words() -> None:
    containers = [{"name": f"c{number}"} for number in range(6_000)]
    assert violations(RULE, {f"{SPEC}.containers": containers}) == [
        Violation(
            f"{AT}.spec.containers",
            "too large to judge: 6,000 containers, at most 50",
            fix="Stay within that, or ask your administrator about maxContainers of the rule job-size.",
            reason=CauseReason.NOT_SUPPORTED,
        )
    ]


@pytest.mark.parametrize(
    ("changes", "settings", "told"),
    [
        ({"spec.mpiReplicaSpecs.a": None}, {"maxReplicaSpecs": 2}, "spec.mpiReplicaSpecs: 3 keys, 2"),
        ({"metadata.labels": KEYS}, {"maxLabels": 8}, "metadata.labels: 9 labels or annotations, 8"),
        ({"metadata.annotations": KEYS}, {"maxLabels": 8}, "metadata.annotations: 9 labels or annotations, 8"),
        (
            {"Worker.template.metadata.labels": KEYS},
            {"maxLabels": 8},
            f"{AT}.metadata.labels: 9 labels or annotations, 8",
        ),
        (
            {"Worker.template.metadata.annotations": KEYS},
            {"maxLabels": 8},
            f"{AT}.metadata.annotations: 9 labels or annotations, 8",
        ),
        ({f"{SPEC}.initContainers": [{}] * 2}, {"maxContainers": 2}, f"{AT}.spec.containers: 3 containers, 2"),
        (
            {f"{CONTAINER}.command": ["a"] * 5, f"{CONTAINER}.args": ["a"] * 5},
            {"maxArguments": 9},
            f"{AT}.spec.containers[*].command: 10 arguments, 9",
        ),
        (
            {f"{CONTAINER}.env": [{"name": "a"}] * 2, f"{CONTAINER}.envFrom": [{}] * 2},
            {"maxEnv": 3},
            f"{AT}.spec.containers[*].env: 4 environment variables, 3",
        ),
        (
            {f"{CONTAINER}.resources": {"limits": KEYS, "requests": {"cpu": 1}, "claims": [{}]}},
            {"maxResources": 10},
            f"{AT}.spec.containers[*].resources: 11 resources and claims, 10",
        ),
        (
            {f"{CONTAINER}.securityContext.capabilities": {"add": ["a"] * 5, "drop": ["a"] * 5}},
            {"maxResources": 12},
            f"{AT}.spec.containers[*].resources: 13 resources and claims, 12",
        ),
        (
            {f"{SPEC}.overhead": KEYS, f"{SPEC}.resourceClaims": [{}], f"{SPEC}.resources": {"limits": {"cpu": 1}}},
            {"maxResources": 10},
            f"{AT}.spec: 11 resources and claims, 10",
        ),
        (
            {f"{SPEC}.volumes": [claim(requests=KEYS), claim(limits=KEYS, requests={"a": 1}), {"name": "x"}]},
            {"maxResources": 18},
            f"{AT}.spec: 19 resources and claims, 18",
        ),
        (
            {"spec.runPolicy.schedulingPolicy.minResources": KEYS},
            {"maxResources": 8},
            "spec.runPolicy.schedulingPolicy.minResources: 9 resources and claims, 8",
        ),
        ({f"{CONTAINER}.ports": [{}] * 3}, {"maxPorts": 2}, f"{AT}.spec.containers[*].ports: 3 ports, 2"),
        (
            {f"{CONTAINER}.volumeMounts": [{}] * 3},
            {"maxMounts": 2},
            f"{AT}.spec.containers[*].volumeMounts: 3 volume mounts, 2",
        ),
        ({f"{SPEC}.volumes": [{}] * 3}, {"maxVolumes": 2}, f"{AT}.spec.volumes: 3 volumes, 2"),
        (
            {f"{SPEC}.volumes": [{"projected": {"sources": CONFIG_MAPS}}]},
            {"maxReferences": 5},
            f"{AT}.spec: 6 references, 5",
        ),
        (
            {
                f"{SPEC}.imagePullSecrets": [{}] * 2,
                f"{SPEC}.volumes": [
                    {"downwardAPI": {"items": [{}] * 2}},
                    {"projected": {"sources": [{"downwardAPI": {"items": [{}] * 2}}]}},
                ],
                "Worker.template.metadata.annotations": {"k8s.v1.cni.cncf.io/networks": "a,b,c"},
            },
            {"maxReferences": 8},
            f"{AT}.spec: 9 references, 8",
        ),
        ({f"{SPEC}.tolerations": [{}] * 3}, {"maxTolerations": 2}, f"{AT}.spec.tolerations: 3 tolerations, 2"),
        ({f"{SPEC}.nodeSelector": KEYS}, {"maxNodeSelector": 8}, f"{AT}.spec.nodeSelector: 9 nodeSelector keys, 8"),
        (
            {f"{SPEC}.affinity": node_terms([TERM, TERM])},
            {"maxAffinity": 9},
            f"{AT}.spec.affinity: 10 affinity terms, expressions and values, 9",
        ),
        (
            {
                f"{SPEC}.affinity": {
                    "podAffinity": {REQUIRED: [POD_TERM]},
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": POD_TERM}, {}]
                    },
                }
            },
            {"maxAffinity": 7},
            f"{AT}.spec.affinity: 8 affinity terms, expressions and values, 7",
        ),
        (
            {f"{SPEC}.topologySpreadConstraints": [{}] * 3},
            {"maxConstraints": 2},
            f"{AT}.spec.topologySpreadConstraints: 3 topology spread constraints, 2",
        ),
    ],
)
def test_what_is_counted(changes: Json, settings: dict[str, int], told: str) -> None:
    path, _, rest = told.partition(": ")
    what, _, most = rest.rpartition(", ")
    assert found(violations(RULE, changes, settings=settings)) == [
        f"{path}: too large to judge: {what}, at most {most}"
    ]
    (setting,) = settings
    assert violations(RULE, changes, settings={setting: settings[setting] + 1}) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"metadata.name": "x" * 300}, "metadata.name"),
        ({"metadata.labels": {"a": "x" * 300}}, "metadata.labels.a"),
        ({f"{CONTAINER}.command": ["a", "x" * 300]}, f"{AT}.spec.containers[0].command[1]"),
        ({f"{SPEC}.nodeSelector": {"x" * 300: "a"}}, f"{AT}.spec.nodeSelector"),
        (
            {f"{CONTAINER}.resources.limits": {"a": {"b": ["x" * 300]}}},
            f"{AT}.spec.containers[0].resources.limits.a.b[0]",
        ),
        ({f"spec.mpiReplicaSpecs.{'x' * 300}": None}, "spec.mpiReplicaSpecs"),
    ],
)
def test_a_text(changes: Json, path: str) -> None:
    told = f"{path}: too large to judge: 300 characters, at most 299"
    assert found(violations(RULE, changes, settings={"maxText": 299})) == [told]
    assert violations(RULE, changes, settings={"maxText": 300}) == []


def test_the_values_of_annotations_have_a_bound_in_kubernetes() -> None:
    assert violations(RULE, {"metadata.annotations": {"a": "x" * 300}}, settings={"maxText": 299}) == []


def test_the_whole() -> None:
    (result,) = found(violations(RULE, settings={"maxBytes": 100}))
    assert result.startswith("spec: too large to judge: ")
    assert result.endswith(" bytes, at most 100")


def test_mappings_and_lists_of_fields_that_nobody_reads() -> None:
    changes = {"spec.x": [[]] * 25_000}
    assert found(violations(RULE, changes)) == ["spec: too large to judge: 25,021 mappings and lists, at most 20,000"]
    assert violations(RULE, changes, settings={"maxNested": 30_000}) == []


@pytest.mark.parametrize("job", [GOOD, COMPLETE])
def test_real_jobs_are_far_from_it(job: Json) -> None:
    tenth = {
        field.alias: max(field.default // 10, 3) for name, field in Settings.model_fields.items() if name != "action"
    }
    assert run(RULE, job, tenth) == []


def test_no_policy_goes_beyond_the_ceilings() -> None:
    assert (CEILING.max_containers, CEILING.max_text) == (200, 512 * 1024)
    for name, field in Settings.model_fields.items():
        if name == "action":
            continue
        ceiling = getattr(CEILING, name)
        assert f"at most {ceiling:,}" in (field.description or "")
        assert field.default < ceiling
        with pytest.raises(ValidationError, match=f"less than or equal to {ceiling}"):
            Settings.model_validate({field.alias: ceiling + 1})
        with pytest.raises(ValidationError, match="greater than or equal to 1"):
            Settings.model_validate({field.alias: 0})


@PROPERTY
@given(any_job())
def test_never_raises(job: Json) -> None:
    run(RULE, job, {"maxText": 1})
    run(RULE, job)
