import pytest

from tests.support.injecting import DEFAULTS, VIEW, inject, mpijob, mutate
from tests.support.jobs import request
from webhook.admission import pipelines
from webhook.api.annotations import CREATED_BY, SKIP

WORKFLOW = "system:serviceaccount:team:argo-workflow"
OWNED = {"ownerReferences": [{"kind": "Workflow", "controller": True}]}
COPY = {"labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"}}


def created(job, username, **about):
    return pipelines.mutate(request(job, username=username, namespace="team", **about), policy=DEFAULTS, view=VIEW)


def name_in(decision):
    return decision.document["metadata"]["annotations"][CREATED_BY]


def test_new_job_gets_the_name_of_its_requester():
    added, notes = inject("created-by", mpijob())
    assert added == {"/metadata/annotations": {CREATED_BY: "alice"}}
    assert notes == []


@pytest.mark.parametrize("metadata", [{}, OWNED, COPY, {"annotations": {SKIP: "created-by"}}])
def test_every_new_job_gets_the_annotation_even_if_it_skips_the_injection(metadata):
    assert name_in(created(mpijob(metadata=metadata), WORKFLOW)) == WORKFLOW


@pytest.mark.parametrize("name", ["bob", ""])
def test_name_that_the_user_wrote_is_unchanged(name):
    """The rule `created-by` judges the name."""
    decision = mutate(mpijob(metadata={"annotations": {CREATED_BY: name}}))
    assert name_in(decision) == name


def test_unknown_requester_is_not_recorded():
    assert "created-by" not in created(mpijob(), "").authors


@pytest.mark.parametrize("manager", ["kubectl-client-side-apply", "kubectl-replace", "kubectl-edit", "argocd", ""])
@pytest.mark.parametrize("annotations", [{}, {CREATED_BY: ""}])
def test_update_by_another_user_keeps_the_name(manager, annotations):
    stored = created(mpijob(), "bob").document
    stored["metadata"]["uid"] = "u"
    new = mpijob(metadata={"annotations": annotations, "uid": "u"})
    assert name_in(mutate(new, operation="UPDATE", stored=stored, manager=manager)) == "bob"


def test_update_of_a_job_without_the_annotation_adds_no_name():
    assert mutate(mpijob(), operation="UPDATE", stored=mpijob()).patch == []
