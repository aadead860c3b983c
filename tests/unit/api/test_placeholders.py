"""Placeholders that `convert` writes into jobs. For such a field, `check` reports only the placeholder."""

from tests.support.jobs import changed
from webhook.api.placeholders import fill_in, find
from webhook.cli import job_check, job_world
from webhook.cli.files import Manifest


def test_placeholder_has_the_path_of_its_field() -> None:
    document = {
        "metadata": {"annotations": {"a.b/c": fill_in("one")}},
        "spec": {
            "mpiReplicaSpecs": {"Worker": {"args": ["x", fill_in("two")]}},
            "x": {"y": f"-n {fill_in('three')}", "z": 1},
        },
    }
    assert dict(find(document)) == {
        "metadata.annotations[a.b/c]": "one",
        "spec.mpiReplicaSpecs[Worker].args[1]": "two",
        "spec.x.y": "three",
    }


def test_check_reports_each_placeholder_once() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": fill_in("the claim with the data")}}
    document = changed(
        {
            "Launcher.template.spec.containers.0.image": fill_in("your image"),
            "Worker.template.spec.volumes": [volume],
        }
    )
    verdict = job_check.check(Manifest("job.yaml", document), job_world.of_nothing())
    assert {(cause["field"], cause["message"]) for cause in verdict.as_json()["causes"]} == {
        (
            "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].image",
            "is still to be filled in. Put here: your image.",
        ),
        (
            "spec.mpiReplicaSpecs[Worker].template.spec.volumes[0].persistentVolumeClaim.claimName",
            "is still to be filled in. Put here: the claim with the data.",
        ),
    }
    assert not [warning for warning in verdict.warnings if "FILL" in warning]
