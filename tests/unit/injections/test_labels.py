import pytest

from tests.support.injecting import PATHS, Example, inject, mpijob

JOB_TYPE = {"training.kubeflow.org/job-type": "mpijob"}
ESCAPED = "/metadata/labels/training.kubeflow.org~1job-type"
EXAMPLE = Example({"job": {"team": "ml"}, "pods": {"example.com/cost-centre": "42"}})


@pytest.mark.parametrize(
    ("metadata", "added"),
    [
        ({}, {"/metadata/labels": JOB_TYPE}),
        ({"labels": None}, {"/metadata/labels": JOB_TYPE}),
        ({"labels": {"app": "x"}}, {ESCAPED: "mpijob"}),
    ],
)
def test_label_job_type_is_added(metadata, added):
    notes = ["added training.kubeflow.org/job-type=mpijob"]
    assert inject("labels", mpijob(metadata=metadata)) == (added, notes)


@pytest.mark.parametrize("value", ["mpijob", "mine", ""])
def test_label_of_the_user_stays(value):
    job = mpijob(metadata={"labels": {"training.kubeflow.org/job-type": value, "team": value}})
    assert inject("labels", job, job={"team": "a"}) == ({}, [])


def test_labels_of_the_policy_are_added():
    settings = {"job": {"team": "ml"}, "pods": {"cost-centre": "42"}}
    added, notes = inject("labels", mpijob(worker={"metadata": {"labels": {"cost-centre": "7"}}}), **settings)
    assert added == {
        "/metadata/labels": JOB_TYPE,
        "/metadata/labels/team": "ml",
        f"{PATHS['Launcher']}/metadata": {"labels": {"cost-centre": "42"}},
    }
    assert notes == ["added training.kubeflow.org/job-type=mpijob, team=ml, cost-centre=42"]
