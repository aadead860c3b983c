"""Pods of a TrainJob other than its launcher and nodes, such as pods that fetch a dataset or a model."""

from typing import Any

import msgspec
import pytest

from tests.support import trainer
from tests.support.trainer import Runtimes, runtime, train_job
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.parts.trainer.shape import of_runtime

POD = "spec.template.spec.replicatedJobs[0].template.spec.template.spec"
IN_RUNTIME = f"(ClusterTrainingRuntime deepspeed, {POD}"


class Team(Runtimes):
    """The namespace `team` with these labels for Pod Security, and a runtime."""

    def __init__(self, manifest: Any, **labels: str) -> None:
        super().__init__(manifest)
        marked = {f"pod-security.kubernetes.io/{mode}": level for mode, level in labels.items()}
        metadata = {"name": "team", "labels": marked}
        self._namespace = NAMESPACES.project(msgspec.json.encode({"metadata": metadata}))

    def get(self, resource: Any, key: Any) -> Any:
        return self._namespace if resource is NAMESPACES else super().get(resource, key)


def test_only_mounted_claims_become_volumes_of_a_pod() -> None:
    base = runtime()
    job_set = base["spec"]["template"]["spec"]
    mount = {"name": "claim-7", "mountPath": "/data"}
    pod = {"containers": [{"name": "step", "image": "step:1", "volumeMounts": [mount]}]}
    template = {"spec": {"template": {"spec": pod}}}
    job_set["replicatedJobs"] += [{"name": f"step-{index}", "template": template} for index in range(30)]
    claims = [{"metadata": {"name": f"claim-{index}"}} for index in range(50)]
    job_set["volumeClaimPolicies"] = [{"templates": claims}]

    shape = of_runtime(base)

    assert shape is not None
    assert len(shape.others) == 30
    assert b"claim" not in shape.document
    assert [pod.document.count(b"claim-") for pod in shape.others] == [2] * 30


def fetching(step: str = "dataset-initializer", **container: Any) -> Any:
    """A runtime with a replicated job that fetches data before the training."""
    manifest = runtime()
    image = "registry.example.com/fetch:1"
    pod = {"containers": [{"name": "proxy", "image": image}, {"name": step, "image": image, **container}]}
    template = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}},
        "spec": {"template": {"spec": pod}},
    }
    manifest["spec"]["template"]["spec"]["replicatedJobs"].insert(0, {"name": step, "template": template})
    return manifest


def decide(manifest: Any, base: Any, *, old: Any = None, **labels: str) -> Any:
    return trainer.decide(manifest, view=Team(base, **labels), old=old)


def denials(decision: Any) -> list[tuple[str, str, str]]:
    return [(finding.rule, finding.violation.path, finding.violation.message) for finding in decision.denied]


def with_initializer(**dataset: Any) -> Any:
    job = train_job()
    job["spec"]["initializer"] = {"dataset": dataset}
    return job


def test_valid_pods_have_no_violation() -> None:
    base = fetching(env=[{"name": "A", "value": "b"}])
    job = with_initializer(storageUri="hf://data", env=[{"name": "A", "value": "c"}], secretRef={"name": "token"})

    for manifest in (job, base):
        decision = decide(manifest, base)
        assert (decision.denied, decision.warnings) == ([], [])


def test_violation_in_the_template_of_other_pods_is_reported() -> None:
    base = fetching(image="Bad Image", volumeMounts=[{"name": "nothing", "mountPath": "/data"}])

    of_job, of_runtime = denials(decide(train_job(), base)), denials(decide(base, base))

    assert [(rule, path) for rule, path, _ in of_runtime] == [("images", f"{POD}.containers[1].image")]
    assert [(rule, path) for rule, path, _ in of_job] == [
        ("images", "spec.runtimeRef"),
        ("pod-template", "spec.runtimeRef"),
    ]
    assert all(IN_RUNTIME in message for *_, message in of_job)


def test_pod_that_pod_security_would_reject_is_reported() -> None:
    base = fetching(securityContext={"privileged": True})

    ((rule, path, message),) = denials(decide(train_job(), base, enforce="baseline"))

    assert (rule, path) == ("pod-security", "spec.runtimeRef")
    assert f"{IN_RUNTIME}.containers[1].securityContext.privileged)" in message


@pytest.mark.parametrize(("step", "field"), [("dataset-initializer", "dataset"), ("model-initializer", "model")])
def test_violation_in_the_initializer_is_reported_with_the_path_in_the_train_job(step: str, field: str) -> None:
    job = train_job()
    wrong = {"env": [{"name": "A"}, {"name": "B=C"}], "secretRef": {"name": "My_Token"}}
    job["spec"]["initializer"] = {field: wrong}

    decision = decide(job, fetching(step, env=[{"name": "A"}]))

    assert {path for _, path, _ in denials(decision)} == {
        f"spec.initializer.{field}.env[1].name",
        f"spec.initializer.{field}.secretRef.name",
    }


def test_initializer_without_a_matching_container_is_not_judged() -> None:
    job = with_initializer(env=[{"name": "B=C"}])

    assert decide(job, fetching("model-initializer")).allowed
    assert decide(job, runtime()).allowed


def test_update_that_does_not_change_a_violation_is_admitted() -> None:
    base = fetching(image="Bad Image")
    job = train_job()
    labelled = {**job, "metadata": {**job["metadata"], "labels": {"a": "b"}}}

    assert decide(labelled, base, old=job).allowed


def test_update_that_changes_only_other_pods_is_judged() -> None:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "dataset-initializer", "image": "Bad Image"}]}}}}
    old, new = train_job(), train_job()
    patched = {"spec": {"replicatedJobs": [{"name": "dataset-initializer", "template": template}]}}
    new["spec"]["runtimePatches"] = [{"manager": "team.example.com/x", "trainingRuntimeSpec": {"template": patched}}]

    [(_, where, _)] = denials(decide(new, fetching(), old=old))

    assert where == (
        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"
        ".template.spec.template.spec.containers[0].image"
    )


def test_changes_by_kueue_are_not_judged() -> None:
    old, new = train_job(), train_job()
    pods = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"flavor": "spot"}}}
    replicated = {"name": "dataset-initializer", "template": {"spec": {"template": pods}}}
    patch = {"template": {"spec": {"replicatedJobs": [replicated]}}}
    new["spec"]["runtimePatches"] = [{"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": patch}]

    assert decide(new, fetching(), old=old).skipped
