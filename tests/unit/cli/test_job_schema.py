"""Jobs in files are checked against the schema of MPIJobs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.any_job import any_job
from tests.support.bad_jobs.written import change
from tests.support.checking import run
from tests.support.jobs import REMOVE, changed
from tests.support.strategies import PROPERTY
from webhook.api import crd_schema
from webhook.api.crd_schema import Shape, short_form
from webhook.cli import files
from webhook.cli.job_schema import SchemaVerdict
from webhook.cli.limits import MAX_SCHEMA_FAULTS

Json = dict[str, Any]
SCHEMA = crd_schema.packaged()
UNKNOWN = "is not a field of an MPIJob (mpi-operator v0.8.0): kubectl rejects it, other clients drop it"
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
WORKER = "spec.mpiReplicaSpecs[Worker]"
POD = f"{WORKER}.template.spec"
CONTAINER = f"{POD}.containers[0]"
LAUNCHER = "spec.mpiReplicaSpecs[Launcher]"
CLAIMED = "pod.volumes.0.ephemeral.volumeClaimTemplate.spec.resources"
VARIABLES = [{"name": "A", "value": "x"}, {"name": "N", "value": "1"}]
TWICE = "is there twice. Change one of the two, or leave it out."
AMOUNT = "must be text or a whole number"
VOLUME = '{"name": "d", "persistentVolumeClaim": {"claimName": "claim"}}'
SPEC = "Worker.template.spec"
OF_CONTAINER = f"{SPEC}.containers.0"


def faults(changes: Json) -> list[tuple[str, str, str]]:
    verdict = SchemaVerdict(changed(changes), SCHEMA)
    return [(violation.path, violation.message, violation.fix) for violation in verdict.violations]


def field(path: str) -> str:
    """Return the path of a job field in the form of messages."""
    role, dot, rest = path.partition(".")
    return re.sub(r"\.(\d+)|(?<=limits)\.(\w+)", r"[\1\2]", {"Worker": WORKER}.get(role, role) + dot + rest)


def full(text: str) -> str:
    """Return the text with whole paths instead of the short names `Worker`, `pod` and `first`."""
    for name, path in (("first", CONTAINER), ("pod", POD), ("Worker", WORKER)):
        text = re.sub(rf"(?<![\w.\[]){name}(?=[.\[]\S|: )", path, text)
    return text


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"spec.slotsPerWorker": None},
        {f"{SPEC}.nodeSelector": {"any.example.com/key": "value", "null": None}},
        {"spec.runPolicy.schedulingPolicy": {"minResources": {"cpu": 1, "memory": "1Gi", "vendor.io/any": 0}}},
        {"metadata": {"generateName": "a-", "labels": {"a": "b"}, "ownerReferences": [OWNER]}},
        {f"{OF_CONTAINER}.ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]},
        {f"{OF_CONTAINER}.livenessProbe": {"httpGet": {"port": "http"}}},
        {"status": {"startTime": "2026-01-01T00:00:00Z"}},
    ],
)
def test_valid_job_has_no_faults(changes: Json) -> None:
    assert faults(changes) == []


@pytest.mark.parametrize(
    "row",
    [
        ("spec.slotPerWorker: 8", "Remove it."),
        ("Worker.annotations: {a: b}", "Move it to Worker.template.metadata.annotations."),
        ("first.labels: {a: b}", "Move it to Worker.template.metadata.labels."),
        ("spec.labels: {a: b}", "Move it to metadata.labels."),
        ("spec.runPolicy:", "spec.ttlSecondsAfterFinished: 60", "Move it to spec.runPolicy.ttlSecondsAfterFinished."),
        ("spec.runPolicy.minAvailable: 1", "Move it to spec.runPolicy.schedulingPolicy.minAvailable."),
        ("first.imagePullPolice: x", "Rename it to imagePullPolicy."),
        ("metadata.label: {a: b}", "Rename it to labels."),
        ("spec.runPolicy:", "Worker.runPolicy: {suspend: true}", "Move it to spec.runPolicy."),
        ("first.resources.limits.cpu:", "first.resources.cpu: 2", "Move it to first.resources.limits[cpu]."),
        ("first.resources.cpu: 2", "Remove it."),
        ("first.resources.mode: {a: 1}", "Remove it."),
        (
            "pod.volumes: [{name: d, ephemeral: {}}]",
            f"{CLAIMED}.storage: 1Gi",
            f"Move it to {field(CLAIMED)}.requests[storage].",
        ),
        ("Worker.template.labels: {a: b}", "Move it to Worker.template.metadata.labels."),
        ("first.runAsUser: 1000", "Move it to first.securityContext.runAsUser."),
        ("first.httpGet: {port: 1}", "Remove it."),
        ("pod.limits: {cpu: 1}", "Remove it."),
        ("zzz: 1", "Remove it."),
        ("metadata.name:", "spec.name: a", "Move it to metadata.name."),
        ("metadata.namespace:", "Worker.namespace: a", "Move it to metadata.namespace."),
        ("spec.runPolicy:", "Worker.backoffLimit: 1", "Move it to spec.runPolicy.backoffLimit."),
        ("first.image:", "pod.image: a:1", "Move it to first.image."),
        ("first.cmd: [a]", "Rename it to command."),
        ("Worker.nodeSelector: {a: b}", "Move it to pod.nodeSelector."),
        ("first.resources:", "Worker.resources: {limits: {cpu: 1}}", "Move it to first.resources."),
        ("spec.schedulerName: a", f"Move it to {LAUNCHER}.template.spec.schedulerName and to pod.schedulerName."),
        ("spec.queueName: a", "Move it to metadata.labels[kueue.x-k8s.io/queue-name]."),
        ("metadata.queue: a", "Move it to metadata.labels[kueue.x-k8s.io/queue-name]."),
        ("first.volumes: [{name: a, mountPath: /a}]", "Rename it to volumeMounts."),
        ("first.securityContext.fsGroup: 1", "Move it to pod.securityContext.fsGroup."),
        ("first.environment: [{name: A}]", "Rename it to env."),
        ("pod.containers:", "pod.container: [{name: a, image: a:1}]", "Rename it to containers."),
    ],
)
def test_unknown_field_is_rejected_with_a_fix(row: tuple[str, ...]) -> None:
    *changes, fix = row
    path, _ = change(changes[-1])
    assert faults(dict(map(change, changes))) == [(field(path), UNKNOWN, full(fix))]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("first.env: {A: x, 'N': 1}", f"must be a list, not a mapping. Write {json.dumps(VARIABLES)}."),
        ("spec.slotsPerWorker: many", "must be a whole number, not text. Write 1, or a whole number of your own."),
        ("pod.securityContext.runAsUser: root", "must be a whole number, not text. Write 0."),
        ("spec.slotsPerWorker: 1.5", "must be a whole number, not 1.5. Write 2."),
        ("spec.slotsPerWorker: true", "must be a whole number, not true. Write 1, or a whole number of your own."),
        ("spec.runLauncherAsWorker: 'True'", "must be true or false, not text. Write true."),
        ("first.resources.limits.cpu: [1]", f"{AMOUNT}, not a list. Remove it, or write text or a whole number."),
        ("first.resources.limits.cpu: 0.5", f'{AMOUNT}, not 0.5. Write "0.5" in quotes, or 500m.'),
        ("spec.runPolicy.activeDeadlineSeconds: 24h", "must be a whole number, not text. Write 86400."),
        ("first.command: '/bin/bash -c ''a && b'''", 'must be a list, not text. Write ["/bin/bash", "-c", "a && b"].'),
        ("first.command: 'a && b'", 'must be a list, not text. Write ["/bin/sh", "-c", "a && b"].'),
        ("first.name:", "is missing. Add it, such as name: main."),
        ("spec.mpiReplicaSpecs:", "is missing. Add it."),
    ],
)
def test_wrong_value_is_rejected_with_a_fix(row: str, problem: str) -> None:
    path, value = change(row)
    assert [(path, f"{fault}. {fix}") for path, fault, fix in faults({path: value})] == [(field(path), problem)]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("pod.containers: [null]", "first: must be a mapping, not empty. Remove it, or write a mapping."),
        ("Worker.template.metadata: {a: null}", f"Worker.template.metadata.a: {UNKNOWN}. Remove it."),
        ("first.env: [{name: 'N'}, {name: 'N'}]", f'first.env[1].name: "N" {TWICE}'),
        (
            "first.ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]",
            f'first.ports[1].containerPort: 1, "TCP" {TWICE}',
        ),
    ],
)
def test_fault_within_a_value_is_reported_with_its_path(row: str, problem: str) -> None:
    assert [f"{path}: {fault}. {fix}" for path, fault, fix in faults(dict([change(row)]))] == [full(problem)]


def test_rules_see_a_misplaced_field_in_the_enclosing_object() -> None:
    volumes = [{"name": "d", "emptyDir": {}}]
    verdict = SchemaVerdict(changed({f"{OF_CONTAINER}.volumes": volumes, f"{SPEC}.volumes": REMOVE}), SCHEMA)
    pod = verdict.fixed["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert pod["volumes"] == volumes
    assert "volumes" not in pod["containers"][0]


def test_rules_see_roles_outside_of_mpi_replica_specs() -> None:
    job = changed({})
    roles = job["spec"].pop("mpiReplicaSpecs")
    verdict = SchemaVerdict({**job, "spec": {**job["spec"], **roles}}, SCHEMA)
    assert [violation.fix for violation in verdict.violations] == [
        f"Move it to spec.mpiReplicaSpecs[{role}]." for role in ("Launcher", "Worker")
    ]
    assert verdict.fixed == changed({})


def test_rules_see_a_misplaced_field_in_the_inner_object() -> None:
    container = {"name": "a", "image": "a:1", "resources": {"nvidia.com/gpu": 2, "limits": {"memory": "1Gi"}}}
    verdict = SchemaVerdict(
        changed({"Worker.template": {"containers": [container], "spec": {"hostNetwork": True}}}), SCHEMA
    )
    assert [(violation.path, violation.fix) for violation in verdict.violations] == [
        (f"{WORKER}.template.containers", f"Move it to {POD}.containers."),
        (
            f"{CONTAINER}.resources[nvidia.com/gpu]",
            f"Move it to {CONTAINER}.resources.limits[nvidia.com/gpu].",
        ),
    ]
    pod = verdict.fixed["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert pod["hostNetwork"]
    assert pod["containers"][0]["resources"] == {"limits": {"memory": "1Gi", "nvidia.com/gpu": 2}}


def test_fixed_job_has_no_faults() -> None:
    changes = {
        "spec.slotsPerWorker": "8",
        "spec.runPolicy": {"backofLimit": "3"},
        "spec.cleanPodPolicy": "All",
        "zzz": 1,
    }
    verdict = SchemaVerdict(changed(changes), SCHEMA)
    assert verdict.unconvertible == []
    assert verdict.fixed["spec"]["runPolicy"] == {"backoffLimit": 3, "cleanPodPolicy": "All"}
    assert verdict.fixed["spec"]["slotsPerWorker"] == 8
    assert SchemaVerdict(verdict.fixed, SCHEMA).violations == []


def test_number_of_schema_faults_is_limited() -> None:
    assert len(faults({"spec": {f"x{number}": 1 for number in range(1000)}})) == MAX_SCHEMA_FAULTS


@PROPERTY
@given(any_job())
def test_any_job_has_no_fault_with_a_fix_after_all_fixes(job: Json) -> None:
    verdict = SchemaVerdict(job, SCHEMA)
    if not verdict.unconvertible and len(verdict.violations) < MAX_SCHEMA_FAULTS:
        remaining = SchemaVerdict(verdict.fixed, SCHEMA).violations
        assert not any(violation.fix.startswith(("Write", "Rename", "Move")) for violation in remaining)


WRONG: list[Any] = ["", " ", "x", "a=b", "s/k", 5, 0.5, True, [], ["x"], [5], {}, {"x": 1}, {"name": 5}, {"": "x"}]


@st.composite
def lists(draw: st.DrawFn, path: str) -> Json:
    """Some lists of the object at `path`. Each item has some fields of its type, often with a wrong value."""
    shape = SCHEMA.root
    for step in path.split("."):
        shape = shape.fields.get(step) or shape.values or shape.items or shape
    of_objects = {name: each.items for name, each in shape.fields.items() if each.items and each.items.fields}
    values = st.sampled_from([*WRONG, None])
    items = {
        name: st.dictionaries(st.sampled_from([*item.fields]), values, max_size=3) | values
        for name, item in of_objects.items()
    }
    names = draw(st.lists(st.sampled_from([*of_objects]), max_size=4, unique=True))
    return {f"{path}.{name}": draw(st.lists(items[name], max_size=3)) for name in names}


@PROPERTY
@given(lists(f"spec.mpiReplicaSpecs.{SPEC}"), lists(f"spec.mpiReplicaSpecs.{OF_CONTAINER}"))
def test_no_value_in_a_list_of_a_file_raises_an_error(of_pod: Json, of_container: Json) -> None:
    of_pod.pop(f"spec.mpiReplicaSpecs.{SPEC}.containers", None)
    content = json.dumps(changed(of_pod | of_container), indent=1).encode()
    for manifest in files.parse(content, "job.yaml"):
        SchemaVerdict(manifest.document, SCHEMA, manifest)


def check(tmp_path: Path, text: str) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return run("check", str(path)).stdout


@pytest.mark.parametrize(
    ("env", "fix"),
    [
        *(([{"name": "Y", "value": text}], f'Write "{text}"') for text in ("3.10", "1.0", "010", "0x1F", "yes", "1")),
        (
            {"N": "010", "V": "1.10", "T": "no"},
            '{"name": "N", "value": "010"}, {"name": "V", "value": "1.10"}, {"name": "T", "value": "no"}',
        ),
        ([{"N": "no"}], 'Write {"name": "N", "value": "no"}.'),
    ],
)
def test_fix_keeps_the_spelling_of_a_value_that_must_be_text(tmp_path: Path, env: Any, fix: str) -> None:
    text = json.dumps(changed({f"{OF_CONTAINER}.env": "@"}), indent=1)
    unquoted = re.sub(r'"(0x1F|[\d.]+|no|yes|N)"', r"\1", json.dumps(env))
    assert fix in check(tmp_path, text.replace('"@"', unquoted))


def test_violations_of_rules_are_reported_together_with_schema_faults(tmp_path: Path) -> None:
    """The rules check the job with the suggested fixes, so that users see all problems at once."""
    problems = check(
        tmp_path, json.dumps(changed({"Worker.replicas": REMOVE, "Worker.replica": 1, "spec.slotPerWorker": 8}))
    )
    assert "replica: is not a field" in problems
    assert "slotPerWorker: is not a field" in problems
    assert "1 worker, at least 2 required [worker-count]" in problems


def test_field_is_reported_by_a_rule_or_the_schema_but_not_both(tmp_path: Path) -> None:
    problems = check(tmp_path, json.dumps(changed({"spec.mpiImplementation": "openmpi"})))
    assert problems.count("spec.mpiImplementation:") == 1
    assert "Write OpenMPI." in problems


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({f"{SPEC}.containers": [{"name": "a", "image": "a:1"}] * 2}, "containers[1].name"),
        (
            {
                f"{SPEC}.volumes": [{"name": "d", "emptyDir": {}}],
                f"{OF_CONTAINER}.volumeMounts": [{"name": "d", "mountPath": "/d"}] * 2,
            },
            "containers[0].volumeMounts[1].mountPath",
        ),
        ({f"{SPEC}.volumes": [{"name": "d", "emptyDir": {}}] * 2}, "volumes[1].name"),
    ],
)
def test_duplicate_is_reported_once(tmp_path: Path, changes: Json, path: str) -> None:
    problems = check(tmp_path, json.dumps(changed(changes)))
    assert f"{path}: there is another" in problems
    assert "[schema]" not in problems


def test_rules_do_not_report_a_field_of_an_unusable_type(tmp_path: Path) -> None:
    problems = check(tmp_path, json.dumps(changed({"Worker": [], "spec.slotPerWorker": 1})))
    assert "spec.mpiReplicaSpecs[Worker]: must be a mapping, not a list" in problems
    assert "spec.slotPerWorker: is not a field" in problems
    assert "worker-count" not in problems


def test_schema_with_references_is_read() -> None:
    """The OpenAPI document of an API server uses references."""
    definitions = {"Meta": {"type": "object", "properties": {"a": {"type": "string"}}}}
    openapi = {
        "type": "object",
        "properties": {
            "metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}]},
            "spec": {"allOf": [{"$ref": "#/components/schemas/Meta"}], "default": {}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    *_, whole = short_form(openapi, definitions)
    assert whole["fields"]["free"] == "any"
    assert {"fields": {"a": "string"}} in short_form(openapi, definitions)


def test_packaged_schema_is_from_mpi_operator_0_8_0() -> None:
    assert SCHEMA.origin == "mpi-operator v0.8.0"
    assert set(SCHEMA.root.fields) == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert SCHEMA.root.fields["spec"].fields["slotsPerWorker"] == Shape("integer")


@pytest.mark.parametrize(
    "row",
    [
        ("first.env: [{name: A, valueFrom: 5}]", "first.env[0].valueFrom: Remove it, or write a mapping."),
        ("first.command: [a, null]", "first.command[1]: Remove it, or write text."),
        (
            "first.env: [{name: A, valueFrom: {secretKeyRef: s/k}}]",
            'first.env[0].valueFrom.secretKeyRef: Write {"name": "s", "key": "k"}.',
        ),
        (
            "first.env: [{name: A, valueFrom: {fieldRef: status.podIP}}]",
            'first.env[0].valueFrom.fieldRef: Write {"fieldPath": "status.podIP"}.',
        ),
        (
            "first.securityContext: {seccompProfile: RuntimeDefault}",
            'first.securityContext.seccompProfile: Write {"type": "RuntimeDefault"}.',
        ),
        (
            "pod.topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, "
            "labelSelector: {app: x}}]",
            "pod.topologySpreadConstraints[0].labelSelector.app: Move it to "
            f"{POD}.topologySpreadConstraints[0].labelSelector.matchLabels[app].",
        ),
        ("first.env: [A=b=c]", 'first.env[0]: Write {"name": "A", "value": "b=c"}.'),
        ("first.env: [{A: 1}]", 'first.env[0]: Write {"name": "A", "value": "1"}.'),
        ("pod.imagePullSecrets: s", 'pod.imagePullSecrets: Write [{"name": "s"}].'),
        ("pod.volumes: {d: {emptyDir: {}}}", 'pod.volumes: Write [{"name": "d", "emptyDir": {}}].'),
        (
            "first.securityContext: {capabilities: [IPC_LOCK]}",
            'first.securityContext.capabilities: Write {"add": ["IPC_LOCK"]}.',
        ),
        (
            "pod.affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{matchFields: []}]}}",
            "pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: "
            'Write {"nodeSelectorTerms": [{"matchFields": []}]}.',
        ),
        ("first.command: bash -c a b c", 'first.command: Write ["bash", "-c", "a b c"].'),
        ("first.resources: {limits: {memory: 1.5}}", "first.resources.limits[memory]: Write 1536Mi, or 1500M."),
        ("first.resources: {limits: {nvidia.com/gpu: 0.5}}", "first.resources.limits[nvidia.com/gpu]: Write 1."),
        ("spec.runPolicy: {activeDeadlineSeconds: '24:00:00'}", "spec.runPolicy.activeDeadlineSeconds: Write 86400."),
        ("spec.slotsPerWorker: 8x", "spec.slotsPerWorker: Write 8."),
        ("pod.nodeSelector: [{gpu: true}, {b: c}]", 'pod.nodeSelector: Write {"gpu": "true", "b": "c"}.'),
        ("first.image: {repository: ml/train, tag: '1.0'}", 'first.image: Write "ml/train:1.0".'),
        (
            "first.envFrom: [{secretName: s}]",
            "first.envFrom[0].secretName: Rename it to secretRef.",
            'first.envFrom[0].secretRef: Write {"name": "s"}.',
        ),
        ("pod.volumes: {d: claim}", f"pod.volumes: Write [{VOLUME}]."),
        ("pod.volumes: [{d: claim}]", f"pod.volumes[0]: Write {VOLUME}."),
        ("pod.volumes: ['d:claim']", f"pod.volumes[0]: Write {VOLUME}."),
        (
            "pod.tolerations: [gpu, Exists]",
            'pod.tolerations[0]: Write {"key": "gpu", "operator": "Exists"}.',
            "pod.tolerations[1]: Remove it, or write a mapping.",
        ),
        (
            "pod.tolerations: ['gpu=a:NoExecute', {gpu: NoSchedul}]",
            'pod.tolerations[0]: Write {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}.',
            'pod.tolerations[1]: Write {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}.',
        ),
        ("pod.nodeSelector: [gpu]", 'pod.nodeSelector: Write {"gpu": "true"}.'),
        (
            "pod.securityContext: privileged",
            'pod.securityContext: Write {"privileged": true}.',
            "pod.securityContext.privileged: Move it to first.securityContext.privileged.",
        ),
        ("gang: {minMember: 3}", "spec.runPolicy.schedulingPolicy.minMember: Rename it to minAvailable."),
        ("pod.volumes: ['d:/data']", "pod.volumes[0]: Remove it, or write a mapping."),
        ("first.ports: [22]", 'first.ports[0]: Write {"containerPort": 22}.'),
        ("first.readinessProbe: {tcpSocket: 22}", 'first.readinessProbe.tcpSocket: Write {"port": 22}.'),
        ("first.ports: '22'", 'first.ports: Write [{"containerPort": 22}].'),
        ("spec.mpiImplementation: IntelMPI", "spec.mpiImplementation: Write Intel."),
        ("metadata.labels: [a]", "metadata.labels: Write {team: nlp}, or a mapping of your own."),
    ],
)
def test_fix_is_the_value_in_the_form_that_the_field_needs(row: tuple[str, ...]) -> None:
    wrong, *fixes = row
    assert [f"{path}: {fix}" for path, _, fix in faults(dict([change(wrong)]))] == [full(fix) for fix in fixes]


def test_faults_inside_a_container_that_is_not_in_a_list_are_reported() -> None:
    container = {"name": "a", "image": "a:1", "cmd": "sleep 1"}
    assert [fault[1:] for fault in faults({f"{SPEC}.containers": REMOVE, f"{SPEC}.container": container})] == [
        (UNKNOWN, "Rename it to containers."),
        ("must be a list, not a mapping", f"Write {json.dumps([container])}."),
        (UNKNOWN, "Rename it to command."),
        ("must be a list, not text", 'Write ["sleep", "1"].'),
    ]


def test_fix_for_a_long_value_does_not_quote_the_value() -> None:
    roles = changed({f"{OF_CONTAINER}.args": ["x" * 300]})["spec"]["mpiReplicaSpecs"]
    assert [fix for *_, fix in faults({"spec.mpiReplicaSpecs": [{role: spec} for role, spec in roles.items()]})] == [
        "Remove the dashes before its fields."
    ]
    container = roles["Worker"]["template"]["spec"]["containers"][0]
    assert [fix for *_, fix in faults({f"{SPEC}.containers": container})] == ['Put "- " before its first field.']


def test_rules_see_a_misplaced_field_in_a_misspelt_role() -> None:
    job = changed({})
    roles = job["spec"]["mpiReplicaSpecs"]
    spec = roles["Worker"].pop("template")["spec"]
    renamed = {"Launcher": roles["Launcher"], "workers": {**roles["Worker"], "spec": spec}}
    verdict = SchemaVerdict({**job, "spec": {**job["spec"], "mpiReplicaSpecs": renamed}}, SCHEMA)
    assert verdict.fixed["spec"]["mpiReplicaSpecs"]["Worker"]["template"] == {"spec": spec}
    assert verdict.fixed["spec"]["mpiReplicaSpecs"].keys() == {"Launcher", "Worker"}


def test_misspelt_roles_are_renamed() -> None:
    job = changed({})
    roles = job["spec"]["mpiReplicaSpecs"]
    renamed = {"Master": roles["Launcher"], "workers": roles["Worker"], "Launchers": {}}
    verdict = SchemaVerdict({**job, "spec": {**job["spec"], "mpiReplicaSpecs": renamed}}, SCHEMA)
    assert [violation.fix for violation in verdict.violations] == ["Rename it to Launcher.", "Rename it to Worker."]
    assert verdict.fixed["spec"]["mpiReplicaSpecs"] == {**roles, "Launchers": {}}
