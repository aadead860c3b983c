import pytest
from pydantic import ValidationError

from tests.support.injecting import PATHS, Example, inject, mpijob, only

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
def test_the_job_type(metadata, added):
    notes = ["added training.kubeflow.org/job-type=mpijob"]
    assert inject("labels", mpijob(metadata=metadata)) == (added, notes)


@pytest.mark.parametrize("value", ["mpijob", "mine", ""])
def test_the_users_value_stays(value):
    job = mpijob(metadata={"labels": {"training.kubeflow.org/job-type": value, "team": value}})
    assert inject("labels", job, job={"team": "a"}) == ({}, [])


def test_labels_of_the_policy():
    settings = {"job": {"team": "ml"}, "pods": {"cost-centre": "42"}}
    added, notes = inject("labels", mpijob(worker={"metadata": {"labels": {"cost-centre": "7"}}}), **settings)
    assert added == {
        "/metadata/labels": JOB_TYPE,
        "/metadata/labels/team": "ml",
        f"{PATHS['Launcher']}/metadata": {"labels": {"cost-centre": "42"}},
    }
    assert notes == ["added training.kubeflow.org/job-type=mpijob, team=ml, cost-centre=42"]


@pytest.mark.parametrize(
    "labels",
    [{"training.kubeflow.org/job-name": "x"}, {"": "x"}, {"a b": "x"}, {"a": "x" * 64}, {"a": "b c"}, {"a": 1}],
)
@pytest.mark.parametrize("field", ["job", "pods"])
def test_a_policy_with_labels_that_kubernetes_or_the_operator_refuses(field, labels):
    with pytest.raises(ValidationError):
        only("labels", **{field: labels})


@pytest.mark.parametrize("field", ["job", "pods"])
def test_a_queue_is_left_to_the_injection_that_knows_whether_it_takes_jobs(field):
    """On the job the label alone may leave it suspended for ever, on pods it holds them back one by one."""
    with pytest.raises(ValidationError, match=r"kueue\.x-k8s\.io/ belongs to Kueue: use the injections kueue-queue"):
        only("labels", **{field: {"kueue.x-k8s.io/queue-name": "training"}})
