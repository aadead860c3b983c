from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.jobs import REMOVE
from tests.support.rule_checks import as_texts, violations
from webhook.cluster.snapshot import Snapshot
from webhook.rules import REGISTRY, CauseReason, Violation

HIPAA = {"compliance.openshift.io/hipaa": "true"}
MARKED = {"metadata.annotations": HIPAA}
LAUNCHER = "spec.mpiReplicaSpecs[Launcher].template"
WORKER = "spec.mpiReplicaSpecs[Worker].template"
VOLUME = f"{WORKER}.spec.volumes[0]"
EVERYTHING = {
    "nodeLabels": {"compliance": "hipaa"},
    "storageClasses": ["encrypted"],
    "requireMemoryEmptyDir": True,
    "refuseHostPath": True,
    "jobAnnotations": {"audit.openshift.io/log-to-siem": "true"},
    "podAnnotations": {"audit.openshift.io/log-to-siem": "true"},
}


def check(changes: Json, /, **settings: Any) -> list[Violation]:
    """The violations of a job that is marked as regulated."""
    return violations("compliance", {**MARKED, **changes}, settings=settings, view=CLUSTER)


def claim(name: str, **spec: str) -> Json:
    metadata = {"name": name, "namespace": "team-a"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


CLUSTER = Snapshot(
    [
        claim("safe", storageClassName="encrypted"),
        claim("plain", storageClassName="gp2"),
        claim("default"),
        claim("static", storageClassName=""),
    ]
)


def test_nothing_is_required_by_default() -> None:
    volumes = [{"name": "a", "hostPath": {}}, {"name": "b", "nfs": {}}]
    assert violations("compliance", {**MARKED, "Worker.template.spec.volumes": volumes}) == []


@pytest.mark.parametrize(
    ("changes", "regulated"),
    [
        ({}, False),
        (MARKED, True),
        ({"metadata.labels": HIPAA}, True),
        ({"Worker.template.metadata.labels": HIPAA}, True),
        ({"Launcher.template.metadata.annotations": HIPAA}, True),
        ({"metadata.annotations": {"compliance.openshift.io/data-classification": "PHI"}}, True),
        ({"metadata.labels": {"compliance.openshift.io/hipaa": "TRUE"}}, True),
        # One marker is enough. The other marker, a label, is false.
    ],
)
def test_marker_makes_a_job_regulated(changes: Json, regulated: bool) -> None:
    result = violations("compliance", changes, settings={"nodeLabels": {"compliance": "hipaa"}})
    assert bool(result) is regulated


@pytest.mark.parametrize(
    ("markers", "regulated"),
    [({}, True), ({"data": "secret"}, False), ({"compliance.openshift.io/hipaa": "true"}, True)],
)
def test_configured_markers_decide_which_jobs_are_regulated(markers: Json, regulated: bool) -> None:
    assert bool(check({}, markers=markers, nodeLabels={"compliance": "hipaa"})) is regulated
    assert bool(violations("compliance", settings={"markers": markers, "nodeLabels": {"a": "b"}})) is (not markers)


def affinity(*terms: Json) -> Json:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def term(*values: str, key: str = "compliance", operator: str = "In") -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


OTHER = term("a", key="zone")
BOTH = {"matchExpressions": [*OTHER["matchExpressions"], *term("hipaa")["matchExpressions"]]}


@pytest.mark.parametrize(
    ("pod", "accepted"),
    [
        ({"nodeSelector": {"compliance": "hipaa", "zone": "a"}}, True),
        ({"nodeSelector": {"compliance": "none"}}, False),
        (affinity(term("hipaa")), True),
        (affinity(BOTH), True),
        (affinity(term("hipaa"), {}), True),  # an empty term selects no node
        (affinity(term("hipaa"), OTHER), False),  # the scheduler may choose a node by the second term
        (
            affinity(term("hipaa"), {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}),
            False,
        ),
        (affinity(term("hipaa", "none")), False),
        (affinity(term("hipaa", operator="NotIn")), False),
        (affinity(), False),
        (affinity({}), False),
    ],
)
def test_pod_without_the_required_node_label_is_rejected(pod: Json, accepted: bool) -> None:
    changes = {f"Worker.template.spec.{name}": value for name, value in pod.items()}
    changes["Launcher.template.spec.nodeSelector"] = {"compliance": "hipaa"}
    expected = Violation(
        f"{WORKER}.spec.nodeSelector[compliance]",
        "regulated data may only go to nodes with compliance=hipaa",
        fix='Set it to "hipaa".',
        reason=CauseReason.REQUIRED,
    )
    assert check(changes, nodeLabels={"compliance": "hipaa"}) == ([] if accepted else [expected])


def test_every_node_label_is_required_in_both_templates() -> None:
    result = check({}, nodeLabels={"compliance": "hipaa", "zone": "a"})
    assert [violation.path for violation in result] == [
        f"{template}.spec.nodeSelector[{key}]" for template in (LAUNCHER, WORKER) for key in ("compliance", "zone")
    ]


ENCRYPTED = "storage class encrypted or sealed"


def ephemeral(**template: Any) -> Json:
    return {"ephemeral": {"volumeClaimTemplate": template}}


UNNAMED: list[Json] = [ephemeral(spec={}), ephemeral(), {"ephemeral": {}}]


@pytest.mark.parametrize(
    ("volume", "where", "message", "fix"),
    [
        (ephemeral(spec={"storageClassName": "sealed"}), None, "", ""),
        (
            ephemeral(spec={"storageClassName": "gp2"}),
            "ephemeral.volumeClaimTemplate.spec.storageClassName",
            '"gp2" is not for regulated data',
            f"Use {ENCRYPTED}.",
        ),
        *(
            (
                volume,
                "ephemeral.volumeClaimTemplate.spec.storageClassName",
                "is missing, and the default may not be for regulated data",
                f"Use {ENCRYPTED}.",
            )
            for volume in UNNAMED
        ),
        (
            ephemeral(
                metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "gp2"}},
                spec={"storageClassName": "sealed"},
            ),
            "ephemeral.volumeClaimTemplate.spec.storageClassName",
            '"gp2" is not for regulated data',
            f"Use {ENCRYPTED}.",
        ),
        *(
            (
                {kind: {}},
                kind,
                f"a volume of type {kind} has no storage class, so it is not for regulated data",
                f"Use a PersistentVolumeClaim with {ENCRYPTED}.",
            )
            for kind in ("nfs", "iscsi", "cephfs", "azureFile", "awsElasticBlockStore", "vsphereVolume", "csi")
        ),
        ({"csi": {"driver": "secrets-store.csi.k8s.io"}}, None, "", ""),
        *(
            ({kind: {}}, None, "", "")
            for kind in ("configMap", "secret", "projected", "downwardAPI", "image", "emptyDir")
        ),
        ({"hostPath": {}}, None, "", ""),  # the setting refuseHostPath decides about host paths
        ({}, None, "", ""),
    ],
)
def test_storage_without_an_allowed_class_is_rejected(volume: Json, where: str | None, message: str, fix: str) -> None:
    changes = {"Worker.template.spec.volumes": [{"name": "data", **volume}]}
    result = check(changes, storageClasses=["encrypted", "sealed"], csiDrivers=["secrets-store.csi.k8s.io"])
    expected = Violation(f"{VOLUME}.{where}", message, fix=fix, reason=CauseReason.FORBIDDEN)
    assert result == ([] if where is None else [expected])


@pytest.mark.parametrize(
    ("name", "fault", "fix"),
    [
        ("safe", None, ""),
        ("plain", 'has storage class "gp2", which is not for regulated data', f"Use a claim with {ENCRYPTED}."),
        ("static", "has no storage class, which is not for regulated data", f"Use a claim with {ENCRYPTED}."),
        ("gone", "does not exist, so its storage class is unknown", f"Create it first, with {ENCRYPTED}."),
    ],
)
def test_claim_without_an_allowed_class_is_rejected(name: str, fault: str | None, fix: str) -> None:
    changes = {"Worker.template.spec.volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}
    path, message = f"{VOLUME}.persistentVolumeClaim.claimName", f'PersistentVolumeClaim "{name}" {fault}'
    expected = [Violation(path, message, fix=fix, reason=CauseReason.FORBIDDEN)] if fault else []
    assert check(changes, storageClasses=["encrypted", "sealed"]) == expected


def test_claim_is_accepted_if_the_claims_of_the_cluster_are_unknown() -> None:
    changes = {**MARKED, "Worker.template.spec.volumes": [{"persistentVolumeClaim": {"claimName": "gone"}}]}
    assert violations("compliance", changes, settings={"storageClasses": ["encrypted"]}) == []


@pytest.mark.parametrize(
    ("volume", "where", "message"),
    [
        ({"hostPath": {"path": "/data"}}, "hostPath", "regulated data may not go to a path on the node"),
        ({"emptyDir": {}}, "emptyDir.medium", "regulated data may not go to the disk of the node"),
        ({}, "emptyDir.medium", "regulated data may not go to the disk of the node"),
        ({"emptyDir": None}, "emptyDir.medium", "regulated data may not go to the disk of the node"),
        ({"emptyDir": {"medium": "Memory"}}, None, ""),
        ({"emptyDir": {"medium": "HugePages-2Mi"}}, None, ""),
        ({"configMap": {}}, None, ""),
        ({"persistentVolumeClaim": {"claimName": "plain"}}, None, ""),
    ],
)
def test_volume_on_the_node_is_rejected(volume: Json, where: str | None, message: str) -> None:
    changes = {"Worker.template.spec.volumes": [{"name": "data", **volume}]}
    expected = [f"{VOLUME}.{where}: {message}"] if where else []
    assert as_texts(check(changes, requireMemoryEmptyDir=True, refuseHostPath=True)) == expected
    assert check(changes) == []


MISSING = "is missing, and regulated data needs it"


@pytest.mark.parametrize(
    ("value", "pattern", "message", "fix"),
    [
        ("true", "true", None, ""),
        (REMOVE, "true", MISSING, 'Set it to "true".'),
        (REMOVE, "*", MISSING, "Set it to any text."),
        ("", "?*", '"" is not what regulated data needs', "Set it to any text."),
        ("false", "true", '"false" is not what regulated data needs', 'Set it to "true".'),
        ("TRUE", "true", '"TRUE" is not what regulated data needs', 'Set it to "true".'),
        (
            "42",
            "CHG-*",
            '"42" is not what regulated data needs',
            'Set it to "CHG-*", where * is any text and ? any character.',
        ),
    ],
)
def test_missing_or_different_annotation_is_rejected(value: Any, pattern: str, message: str | None, fix: str) -> None:
    changes = {f"{meta}.annotations.audit": value for meta in ("metadata", "Launcher.template.metadata")}
    changes["Worker.template.metadata.annotations.audit"] = value
    settings = {"jobAnnotations": {"audit": pattern}, "podAnnotations": {"audit": pattern}, "markers": {}}
    paths = ["metadata", f"{LAUNCHER}.metadata", f"{WORKER}.metadata"] if message else []
    reason = CauseReason.REQUIRED if message == MISSING else CauseReason.INVALID
    assert violations("compliance", changes, settings=settings) == [
        Violation(f"{path}.annotations[audit]", message or "", fix=fix, reason=reason) for path in paths
    ]


def test_all_violations_are_reported() -> None:
    volumes: list[Json] = [{"hostPath": {}}, {"emptyDir": {}}, {"nfs": {}}]
    result = check({"Worker.template.spec.volumes": volumes}, **EVERYTHING)
    assert [violation.path for violation in result] == [
        "metadata.annotations[audit.openshift.io/log-to-siem]",
        f"{LAUNCHER}.metadata.annotations[audit.openshift.io/log-to-siem]",
        f"{LAUNCHER}.spec.nodeSelector[compliance]",
        f"{WORKER}.metadata.annotations[audit.openshift.io/log-to-siem]",
        f"{WORKER}.spec.nodeSelector[compliance]",
        f"{WORKER}.spec.volumes[0].hostPath",
        f"{WORKER}.spec.volumes[1].emptyDir.medium",
        f"{WORKER}.spec.volumes[2].nfs",
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"markers": {"a b": "x"}},
        {"nodeLabels": {"a": "b c"}},
        {"storageClasses": ["Fast"]},
        {"csiDrivers": [""]},
        {"jobAnnotations": {"a/b/c": "*"}},
        {"podAnnotations": {"audit": ""}},
    ],
)
def test_invalid_settings_are_rejected(settings: Json) -> None:
    with pytest.raises(ValidationError):
        REGISTRY["compliance"].settings.model_validate(settings)
