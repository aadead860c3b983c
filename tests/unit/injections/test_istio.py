import pytest

from tests.support.injecting import PATHS, inject, mpijob

KEY = "sidecar.istio.io/inject"
ESCAPED = "sidecar.istio.io~1inject"
OFF = {KEY: "false"}
ADDED = f'added {KEY}: "false" to {{}}: MPI does not work through a sidecar'
KEPT = f"{KEY} stays on for {{}}: a sidecar blocks MPI ports and the launcher's end"


def all_metadata(role: str) -> dict[str, object]:
    """The operations for a template without metadata: the first creates the metadata, the second adds annotations."""
    path = f"{PATHS[role]}/metadata"
    return {path: {"labels": OFF}, f"{path}/annotations": OFF}


JOB = {"/metadata/annotations": OFF}


def test_label_and_annotation_on_both_templates_and_annotation_on_the_job():
    added, notes = inject("istio", mpijob())
    assert added == {**all_metadata("Launcher"), **all_metadata("Worker"), **JOB}
    assert notes == [ADDED.format("Launcher, Worker, job")]


def test_other_labels_and_annotations_stay():
    metadata = {"labels": {"app": "x"}, "annotations": {"note": "y"}}
    added, _ = inject("istio", mpijob(metadata=metadata, launcher={"metadata": metadata}))
    assert added == {
        f"/spec/mpiReplicaSpecs/Launcher/template/metadata/labels/{ESCAPED}": "false",
        f"/spec/mpiReplicaSpecs/Launcher/template/metadata/annotations/{ESCAPED}": "false",
        **all_metadata("Worker"),
        f"/metadata/annotations/{ESCAPED}": "false",
    }


@pytest.mark.parametrize("value", ["true", "True", "on", "yes", "y", ""])
@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_template_that_requests_the_sidecar_keeps_it(kind, value):
    template = {"metadata": {kind: {KEY: value}}}
    added, notes = inject("istio", mpijob(launcher=template))
    assert added == all_metadata("Worker")
    assert notes == [KEPT.format("Launcher"), ADDED.format("Worker")]
    added, notes = inject("istio", mpijob(launcher=template, worker=template))
    assert added == {}
    assert notes == [KEPT.format("Launcher and Worker")]


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_job_that_requests_the_sidecar_keeps_it_on_templates_without_the_key(kind):
    added, notes = inject("istio", mpijob(metadata={kind: {KEY: "true"}}, worker={"metadata": {"labels": OFF}}))
    assert added == {f"{PATHS['Worker']}/metadata/annotations": OFF}
    assert notes == [KEPT.format("Launcher"), ADDED.format("Worker")]


def test_label_overrides_the_annotation():
    both = {"labels": {KEY: "false"}, "annotations": {KEY: "true"}}
    added, notes = inject("istio", mpijob(launcher={"metadata": both}, worker={"metadata": both}))
    assert (added, notes) == (JOB, [ADDED.format("job")])


@pytest.mark.parametrize("value", ["false", "no", "never"])
def test_template_with_the_users_opt_out_gets_only_the_label(value):
    added, notes = inject("istio", mpijob(launcher={"metadata": {"annotations": {KEY: value}}}))
    assert added == {f"{PATHS['Launcher']}/metadata/labels": OFF, **all_metadata("Worker"), **JOB}
    assert notes == [ADDED.format("Launcher, Worker, job")]


def test_job_without_workers_gets_the_injection():
    job = mpijob()
    job["spec"]["mpiReplicaSpecs"]["Worker"] = None
    assert inject("istio", job)[0] == {**all_metadata("Launcher"), **JOB}
