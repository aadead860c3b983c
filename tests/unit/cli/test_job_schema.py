"""Checks of jobs in files against the schema of MPIJobs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given

from tests.support.any_job import any_job
from tests.support.bad_jobs.written import change
from tests.support.jobs import REMOVE, changed
from tests.support.strategies import PROPERTY
from webhook.api import crd_schema
from webhook.api.crd_schema import Shape, short_form
from webhook.cli.job_schema import SchemaVerdict
from webhook.cli.limits import MAX_SCHEMA_FAULTS
from webhook.cli.main import main

Json = dict[str, Any]
SCHEMA = crd_schema.packaged()
UNKNOWN = "is not a field of an MPIJob (mpi-operator v0.8.0): kubectl rejects it, other clients drop it"
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
WORKER = "spec.mpiReplicaSpecs[Worker]"
POD = f"{WORKER}.template.spec"
CONTAINER = f"{POD}.containers[0]"
SPEC = "Worker.template.spec"
OF_CONTAINER = f"{SPEC}.containers.0"
VOLUME = '{"name": "d", "persistentVolumeClaim": {"claimName": "claim"}}'
CLAIMED = f"{POD}.volumes[0].ephemeral.volumeClaimTemplate.spec.resources"


def told(changes: Json) -> list[tuple[str, str, str]]:
    return [(each.path, each.message, each.fix) for each in SchemaVerdict(changed(changes), SCHEMA).violations]


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
    assert told(changes) == []


@pytest.mark.parametrize(
    "row",
    [
        ("spec.slotPerWorker: 8", "spec.slotPerWorker: Remove it."),
        ("spec.cleanPodPolicy: All", "spec.cleanPodPolicy: Remove it."),
        (
            "Worker.annotations: {k8s.v1.cni.cncf.io/networks: sriov}",
            f"{WORKER}.annotations: Move it to {WORKER}.template.metadata.annotations.",
        ),
        ("first.labels: {a: b}", f"{CONTAINER}.labels: Move it to {WORKER}.template.metadata.labels."),
        ("spec.labels: {a: b}", "spec.labels: Move it to metadata.labels."),
        (
            "spec.runPolicy:",
            "spec.ttlSecondsAfterFinished: 60",
            "spec.ttlSecondsAfterFinished: Move it to spec.runPolicy.ttlSecondsAfterFinished.",
        ),
        ("spec.runPolicy.slotsPerWorker: 1", "spec.runPolicy.slotsPerWorker: Remove it."),
        (
            "spec.runPolicy.minAvailable: 1",
            "spec.runPolicy.minAvailable: Move it to spec.runPolicy.schedulingPolicy.minAvailable.",
        ),
        ("spec.runPolicy.scheduling: x", "spec.runPolicy.scheduling: Remove it."),
        ("first.imagePullPolice: x", f"{CONTAINER}.imagePullPolice: Rename it to imagePullPolicy."),
        (
            "Worker.template.metadata: {creationTimestamp: null}",
            f"{WORKER}.template.metadata.creationTimestamp: Remove it.",
        ),
        ("metadata.label: {a: b}", "metadata.label: Rename it to labels."),
        (
            "metadata.ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: u, owner: true}]",
            "metadata.ownerReferences[0].owner: Remove it.",
        ),
        ("spec.runPolicy:", "Worker.runPolicy: {suspend: true}", f"{WORKER}.runPolicy: Move it to spec.runPolicy."),
        (
            "first.resources: {cpu: 2, limits: {memory: 1Gi}}",
            f"{CONTAINER}.resources.cpu: Move it to {CONTAINER}.resources.limits[cpu].",
        ),
        ("first.resources: {cpu: 2, limits: {cpu: 2}}", f"{CONTAINER}.resources.cpu: Remove it."),
        ("first.resources: {mode: {a: 1}}", f"{CONTAINER}.resources.mode: Remove it."),
        (
            "pod.volumes: [{name: d, ephemeral: {volumeClaimTemplate: {spec: {resources: {storage: 1Gi}}}}}]",
            f"{CLAIMED}.storage: Move it to {CLAIMED}.requests[storage].",
        ),
        ("Worker.template.labels: {a: b}", f"{WORKER}.template.labels: Move it to {WORKER}.template.metadata.labels."),
        ("first.runAsUser: 1000", f"{CONTAINER}.runAsUser: Move it to {CONTAINER}.securityContext.runAsUser."),
        ("first.httpGet: {port: 1}", f"{CONTAINER}.httpGet: Remove it."),
        ("pod.limits: {cpu: 1}", f"{POD}.limits: Remove it."),
        ("zzz: 1", "zzz: Remove it."),
        ("metadata.name:", "spec.name: a", "spec.name: Move it to metadata.name."),
        ("metadata.namespace:", "Worker.namespace: a", f"{WORKER}.namespace: Move it to metadata.namespace."),
        (
            "spec.runPolicy:",
            "Worker.backoffLimit: 1",
            f"{WORKER}.backoffLimit: Move it to spec.runPolicy.backoffLimit.",
        ),
        ("first.image:", "pod.image: a:1", f"{POD}.image: Move it to {CONTAINER}.image."),
        ("first.cmd: [a]", f"{CONTAINER}.cmd: Rename it to command."),
        ("Worker.nodeSelector: {a: b}", f"{WORKER}.nodeSelector: Move it to {POD}.nodeSelector."),
        (
            "first.resources:",
            "Worker.resources: {limits: {cpu: 1}}",
            f"{WORKER}.resources: Move it to {CONTAINER}.resources.",
        ),
        (
            "spec.schedulerName: a",
            "spec.schedulerName: Move it to spec.mpiReplicaSpecs[Launcher].template.spec.schedulerName and to "
            f"{POD}.schedulerName.",
        ),
        ("spec.queueName: a", "spec.queueName: Move it to metadata.labels[kueue.x-k8s.io/queue-name]."),
        ("metadata.queue: a", "metadata.queue: Move it to metadata.labels[kueue.x-k8s.io/queue-name]."),
        (
            "spec.runPolicy.kueue\\.x-k8s\\.io/queue-name: a",
            "spec.runPolicy[kueue.x-k8s.io/queue-name]: Move it to metadata.labels[kueue.x-k8s.io/queue-name].",
        ),
        ("first.volumes: [{name: a, mountPath: /a}]", f"{CONTAINER}.volumes: Rename it to volumeMounts."),
        (
            "first.securityContext: {fsGroup: 1}",
            f"{CONTAINER}.securityContext.fsGroup: Move it to {POD}.securityContext.fsGroup.",
        ),
        ("first.entrypoint: [a]", f"{CONTAINER}.entrypoint: Rename it to command."),
        ("first.environment: [{name: A}]", f"{CONTAINER}.environment: Rename it to env."),
        ("pod.containers:", "pod.container: [{name: a, image: a:1}]", f"{POD}.container: Rename it to containers."),
    ],
)
def test_unknown_field_is_rejected_with_a_fix(row: tuple[str, ...]) -> None:
    *changes, path_and_fix = row
    path, _, fix = path_and_fix.partition(": ")
    assert told(dict(map(change, changes))) == [(path, UNKNOWN, fix)]


@pytest.mark.parametrize(
    "row",
    [
        (
            "first.env: {A: x, 'N': 1}",
            f"{CONTAINER}.env: must be a list, not a mapping. "
            'Write [{"name": "A", "value": "x"}, {"name": "N", "value": "1"}].',
        ),
        (
            "spec.slotsPerWorker: many",
            "spec.slotsPerWorker: must be a whole number, not text. Write 1, or a whole number of your own.",
        ),
        (
            f"{SPEC}.securityContext.runAsUser: root",
            f"{POD}.securityContext.runAsUser: must be a whole number, not text. Write 0.",
        ),
        ("spec.slotsPerWorker: 1.5", "spec.slotsPerWorker: must be a whole number, not 1.5. Write 2."),
        (
            "spec.slotsPerWorker: true",
            "spec.slotsPerWorker: must be a whole number, not true. Write 1, or a whole number of your own.",
        ),
        ("spec.runLauncherAsWorker: 'True'", "spec.runLauncherAsWorker: must be true or false, not text. Write true."),
        ("pod.containers: [null]", f"{CONTAINER}: must be a mapping, not empty. Remove it, or write a mapping."),
        (
            "first.resources.limits.cpu: [1]",
            f"{CONTAINER}.resources.limits[cpu]: must be text or a whole number, not a list. "
            "Remove it, or write text or a whole number.",
        ),
        (
            "first.resources.limits.cpu: 0.5",
            f"{CONTAINER}.resources.limits[cpu]: must be text or a whole number, not 0.5. "
            'Write "0.5" in quotes, or 500m.',
        ),
        (
            "spec.runPolicy: {activeDeadlineSeconds: 24h}",
            "spec.runPolicy.activeDeadlineSeconds: must be a whole number, not text. Write 86400.",
        ),
        (
            "first.command: '/bin/bash -c ''mpirun hostname && date'''",
            f'{CONTAINER}.command: must be a list, not text. Write ["/bin/bash", "-c", "mpirun hostname && date"].',
        ),
        (
            "first.command: 'mpirun hostname && date'",
            f'{CONTAINER}.command: must be a list, not text. Write ["/bin/sh", "-c", "mpirun hostname && date"].',
        ),
        ("first.name:", f"{CONTAINER}.name: is missing. Add it, such as name: main."),
        ("spec.mpiReplicaSpecs:", "spec.mpiReplicaSpecs: is missing. Add it."),
        (
            "first.env: [{name: 'N'}, {name: 'N'}]",
            f'{CONTAINER}.env[1].name: "N" is there twice. Change one of the two, or leave it out.',
        ),
        (
            "first.ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]",
            f'{CONTAINER}.ports[1].containerPort: 1, "TCP" is there twice. Change one of the two, or leave it out.',
        ),
    ],
)
def test_wrong_value_is_rejected_with_a_fix(row: tuple[str, ...]) -> None:
    *changes, problem = row
    assert [f"{path}: {fault}. {fix}" for path, fault, fix in told(dict(map(change, changes)))] == [problem]


def test_rules_see_misplaced_annotations_in_the_pod_template() -> None:
    verdict = SchemaVerdict(changed({"Worker.annotations": {"networks.example.com": "sriov"}}), SCHEMA)
    template = verdict.fixed["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    assert template["metadata"]["annotations"] == {"networks.example.com": "sriov"}


def test_rules_see_a_field_moved_to_an_enclosing_object() -> None:
    volumes = [{"name": "d", "emptyDir": {}}]
    verdict = SchemaVerdict(changed({f"{OF_CONTAINER}.volumes": volumes, f"{SPEC}.volumes": REMOVE}), SCHEMA)
    pod = verdict.fixed["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert pod["volumes"] == volumes
    assert "volumes" not in pod["containers"][0]


def test_rules_see_roles_outside_of_mpi_replica_specs() -> None:
    job = changed({})
    roles = job["spec"].pop("mpiReplicaSpecs")
    verdict = SchemaVerdict({**job, "spec": {**job["spec"], **roles}}, SCHEMA)
    assert [each.fix for each in verdict.violations] == [
        f"Move it to spec.mpiReplicaSpecs[{role}]." for role in ("Launcher", "Worker")
    ]
    assert verdict.fixed == changed({})


def test_rules_see_a_field_moved_to_an_inner_object() -> None:
    container = {"name": "a", "image": "a:1", "resources": {"nvidia.com/gpu": 2, "limits": {"memory": "1Gi"}}}
    verdict = SchemaVerdict(
        changed({"Worker.template": {"containers": [container], "spec": {"hostNetwork": True}}}), SCHEMA
    )
    assert [each.fix for each in verdict.violations] == [
        f"Move it to {POD}.containers.",
        f"Move it to {CONTAINER}.resources.limits[nvidia.com/gpu].",
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
    assert len(told({"spec": {f"x{number}": 1 for number in range(1000)}})) == MAX_SCHEMA_FAULTS


@PROPERTY
@given(any_job())
def test_fixed_form_of_any_job_has_no_fault_with_a_fix(job: Json) -> None:
    verdict = SchemaVerdict(job, SCHEMA)
    if not verdict.unconvertible and len(verdict.violations) < MAX_SCHEMA_FAULTS:
        again = SchemaVerdict(verdict.fixed, SCHEMA).violations
        assert [each.path for each in again if each.fix.startswith(("Write", "Rename", "Move"))] == []


def check(tmp_path: Path, job: Json) -> tuple[int, str]:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    result = CliRunner().invoke(main, ["check", str(path)], catch_exceptions=False)
    return result.exit_code, result.stdout


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
def test_fix_for_a_value_in_place_of_text_keeps_its_spelling(tmp_path: Path, env: Any, fix: str) -> None:
    path = tmp_path / "job.yaml"
    text = json.dumps(changed({f"{OF_CONTAINER}.env": "@"}), indent=1)
    path.write_text(text.replace('"@"', re.sub(r'"(0x1F|[\d.]+|no|yes|N)"', r"\1", json.dumps(env))))
    result = CliRunner().invoke(main, ["check", str(path)], catch_exceptions=False)
    assert fix in result.stdout


def test_violations_of_rules_are_reported_together_with_schema_faults(tmp_path: Path) -> None:
    """The rules check the job with the suggested fixes, so that users see all problems at once."""
    wrong = {"Worker.replicas": REMOVE, "Worker.replica": 1, "spec.slotPerWorker": 8}
    code, problems = check(tmp_path, changed(wrong))
    assert code == 1
    assert "2 problems" not in problems
    assert "replica: is not a field" in problems
    assert "slotPerWorker: is not a field" in problems
    assert "1 worker, at least 2 required [worker-count]" in problems
    assert check(tmp_path, changed({"Worker.replicas": 2}))[0] == 0


def test_field_is_reported_by_a_rule_or_the_schema_but_not_both(tmp_path: Path) -> None:
    _, said = check(tmp_path, changed({"spec.mpiImplementation": "openmpi"}))
    assert said.count("spec.mpiImplementation:") == 1
    assert "Write OpenMPI." in said


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
    _, said = check(tmp_path, changed(changes))
    assert f"{path}: there is another" in said
    assert "[schema]" not in said


def test_rules_do_not_report_a_field_of_an_unusable_type(tmp_path: Path) -> None:
    code, problems = check(tmp_path, changed({"spec.mpiReplicaSpecs.Worker": [], "spec.slotPerWorker": 1}))
    assert code == 1
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
        ("first.env: [A=b=c]", f'{CONTAINER}.env[0]: Write {{"name": "A", "value": "b=c"}}.'),
        ("first.env: [{A: 1}]", f'{CONTAINER}.env[0]: Write {{"name": "A", "value": "1"}}.'),
        ("pod.imagePullSecrets: s", f'{POD}.imagePullSecrets: Write [{{"name": "s"}}].'),
        (
            "pod.volumes: [{name: d, persistentVolumeClaim: data}]",
            f'{POD}.volumes[0].persistentVolumeClaim: Write {{"claimName": "data"}}.',
        ),
        ("pod.volumes: {d: {emptyDir: {}}}", f'{POD}.volumes: Write [{{"name": "d", "emptyDir": {{}}}}].'),
        (
            "first.securityContext: {capabilities: [IPC_LOCK]}",
            f'{CONTAINER}.securityContext.capabilities: Write {{"add": ["IPC_LOCK"]}}.',
        ),
        ("first.command: bash -c a b c", f'{CONTAINER}.command: Write ["bash", "-c", "a b c"].'),
        ("first.resources: {limits: {memory: 1.5}}", f"{CONTAINER}.resources.limits[memory]: Write 1536Mi, or 1500M."),
        ("first.resources: {limits: {nvidia.com/gpu: 0.5}}", f"{CONTAINER}.resources.limits[nvidia.com/gpu]: Write 1."),
        ("spec.runPolicy: {activeDeadlineSeconds: '24:00:00'}", "spec.runPolicy.activeDeadlineSeconds: Write 86400."),
        ("spec.slotsPerWorker: 8x", "spec.slotsPerWorker: Write 8."),
        ("pod.nodeSelector: [{gpu: true}, {b: c}]", f'{POD}.nodeSelector: Write {{"gpu": "true", "b": "c"}}.'),
        (
            "first.image: {repository: ml/train, tag: '1.0'}",
            f'{CONTAINER}.image: Write "ml/train:1.0".',
        ),
        (
            "first.envFrom: [{secretName: s}]",
            f"{CONTAINER}.envFrom[0].secretName: Rename it to secretRef.",
            f'{CONTAINER}.envFrom[0].secretRef: Write {{"name": "s"}}.',
        ),
        ("pod.volumes: {d: claim}", f"{POD}.volumes: Write [{VOLUME}]."),
        ("pod.volumes: [{d: claim}]", f"{POD}.volumes[0]: Write {VOLUME}."),
        ("pod.volumes: ['d:claim']", f"{POD}.volumes[0]: Write {VOLUME}."),
        (
            "pod.tolerations: [gpu, Exists]",
            f'{POD}.tolerations[0]: Write {{"key": "gpu", "operator": "Exists"}}.',
            f"{POD}.tolerations[1]: Remove it, or write a mapping.",
        ),
        (
            "pod.tolerations: ['gpu=a:NoExecute', {gpu: NoSchedul}]",
            f'{POD}.tolerations[0]: Write {{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}}.',
            f'{POD}.tolerations[1]: Write {{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}}.',
        ),
        ("pod.nodeSelector: [gpu]", f'{POD}.nodeSelector: Write {{"gpu": "true"}}.'),
        (
            "pod.securityContext: privileged",
            f'{POD}.securityContext: Write {{"privileged": true}}.',
            f"{POD}.securityContext.privileged: Move it to {CONTAINER}.securityContext.privileged.",
        ),
        ("gang: {minMember: 3}", "spec.runPolicy.schedulingPolicy.minMember: Rename it to minAvailable."),
        (
            "pod.volumes: ['d:/data']",
            f"{POD}.volumes[0]: Remove it, or write a mapping.",
        ),
        ("first.ports: [22]", f'{CONTAINER}.ports[0]: Write {{"containerPort": 22}}.'),
        ("first.readinessProbe: {tcpSocket: 22}", f'{CONTAINER}.readinessProbe.tcpSocket: Write {{"port": 22}}.'),
        ("first.ports: '22'", f'{CONTAINER}.ports: Write [{{"containerPort": 22}}].'),
        ("spec.mpiImplementation: IntelMPI", "spec.mpiImplementation: Write Intel."),
        ("metadata.labels: [a]", "metadata.labels: Write {team: nlp}, or a mapping of your own."),
    ],
)
def test_fix_is_the_value_in_the_form_of_the_field(row: tuple[str, ...]) -> None:
    wrong, *fixes = row
    assert [f"{path}: {fix}" for path, _, fix in told(dict([change(wrong)]))] == fixes


def test_faults_inside_a_container_that_is_not_in_a_list_are_reported() -> None:
    container = {"name": "a", "image": "a:1", "cmd": "sleep 1"}
    assert [each[1:] for each in told({f"{SPEC}.containers": REMOVE, f"{SPEC}.container": container})] == [
        (UNKNOWN, "Rename it to containers."),
        ("must be a list, not a mapping", f"Write {json.dumps([container])}."),
        (UNKNOWN, "Rename it to command."),
        ("must be a list, not text", 'Write ["sleep", "1"].'),
    ]


def test_fix_for_a_long_value_does_not_quote_the_value() -> None:
    roles = changed({f"{OF_CONTAINER}.args": ["x" * 300]})["spec"]["mpiReplicaSpecs"]
    assert [each[2] for each in told({"spec.mpiReplicaSpecs": [{role: each} for role, each in roles.items()]})] == [
        "Remove the dashes before its fields."
    ]
    container = roles["Worker"]["template"]["spec"]["containers"][0]
    assert [each[2] for each in told({f"{SPEC}.containers": container})] == ['Put "- " before its first field.']


def test_rules_see_a_field_moved_into_a_misspelt_role() -> None:
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
    assert [each.fix for each in verdict.violations] == ["Rename it to Launcher.", "Rename it to Worker."]
    assert verdict.fixed["spec"]["mpiReplicaSpecs"] == {**roles, "Launchers": {}}
