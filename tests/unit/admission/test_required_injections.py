"""The final object is checked for the injections that the policy requires."""

import copy

import pytest

from tests.support.injecting import VIEW, mpijob, mutate, policy_of
from tests.support.kueue_objects import config
from tests.support.rule_checks import decide
from webhook import injections
from webhook.admission.validate.required_injections import RULE, field
from webhook.cluster.snapshot import Snapshot
from webhook.injections import Injection
from webhook.kit.patch import PatchConflict
from webhook.kit.settings import InjectionSettings
from webhook.policy.in_force import Policy

DEADLINE = "spec.runPolicy.activeDeadlineSeconds"
FIX = "Submit it again; if that does not help, another webhook removes it: ask your administrator."
MISSING = f'the injection "job-timeout" is required and not in the job. {FIX} [{RULE}]'


def requiring(required="deny", **settings):
    return policy_of({"job-timeout": {"required": required, **settings}})


def violations(job, policy, old=None):
    decision = decide(job, policy, old=old, view=VIEW, namespace="team")
    return {
        kind: [f"{finding.violation.path}: {finding.sentence}" for finding in findings if finding.rule == RULE]
        for kind, findings in (("deny", decision.denied), ("warn", decision.warned), ("audit", decision.audited))
        if any(finding.rule == RULE for finding in findings)
    }


@pytest.mark.parametrize("action", ["deny", "warn", "audit"])
def test_required_value_removed_by_another_webhook_is_reported_as_missing(action):
    policy = requiring(action)
    job = mutate(mpijob(), policy).document
    assert violations(job, policy) == {}
    del job["spec"]["runPolicy"]["activeDeadlineSeconds"]
    assert violations(job, policy) == {action: [f"{DEADLINE}: {MISSING}"]}


def test_nothing_is_required_by_default():
    assert violations(mpijob(), policy_of({})) == {}
    assert violations(mpijob(), requiring("off")) == {}
    assert violations(mpijob(), requiring(enabled=False)) == {}


LIMITED = {"activeDeadlineSeconds": 60, "cleanPodPolicy": "Running"}


def with_limits(**values):
    job = mpijob(run_policy=LIMITED, **values)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["activeDeadlineSeconds"] = 60
    return job


def test_user_value_satisfies_a_required_injection():
    assert violations(with_limits(), requiring()) == {}


def test_several_missing_fields_are_reported_in_one_message():
    (text,) = violations(mpijob(), policy_of({"api-access": {"required": "deny"}}))["deny"]
    assert text == (
        "spec.mpiReplicaSpecs[Launcher].template.spec.automountServiceAccountToken: "
        'the injection "api-access" is required and not in the job, and 1 other values of it are missing too. '
        f"{FIX} [{RULE}]"
    )


def test_mode_of_the_policy_limits_the_action():
    document = requiring().document.model_copy(update={"mode": "warn"})
    policy = Policy(document, (), requiring().injections)
    assert list(violations(mpijob(), policy)) == ["warn"]


def test_update_that_does_not_remove_a_required_value_is_admitted():
    policy = requiring()
    good = mutate(mpijob(), policy).document
    bad = copy.deepcopy(good)
    del bad["spec"]["runPolicy"]["activeDeadlineSeconds"]
    assert list(violations(bad, policy, old=good)) == ["deny"]
    bad["metadata"]["labels"]["a"] = "b"
    assert violations(bad, policy, old=mpijob()) == {}, "the stored job lacks the required value too"


def test_forged_list_of_injections_is_ignored():
    policy = requiring()
    good = mutate(mpijob(), policy).document
    good["metadata"]["annotations"]["training.openshift.io/injected"] = "{}"
    bad = copy.deepcopy(good)
    del bad["spec"]["runPolicy"]["activeDeadlineSeconds"]
    assert list(violations(bad, policy, old=good)) == ["deny"]


CLAIMS = [
    {"ownerReferences": [{"kind": "TrainJob", "controller": True}]},
    {"labels": {"kueue.x-k8s.io/prebuilt-workload-name": "w"}},
    {"annotations": {"kueue.x-k8s.io/multikueue-origin": "w"}},
]


@pytest.mark.parametrize("metadata", CLAIMS)
def test_job_that_claims_to_have_a_controller_needs_required_injections(metadata):
    (text,) = violations(mpijob(metadata=metadata), requiring())["deny"]
    assert "Nothing is injected into a job that is " in text
    assert ": write it into the job, or ask your administrator to exempt the user who creates such jobs" in text
    assert violations(with_limits(metadata=metadata), requiring()) == {}


@pytest.mark.parametrize("metadata", CLAIMS)
@pytest.mark.parametrize(("view", "trusted"), [(Snapshot([config()]), True), (VIEW, False)])
def test_controller_may_create_jobs_without_injections_if_kueue_is_installed(metadata, view, trusted):
    policy = requiring()
    username = policy.document.controllers[0]
    denied = decide(mpijob(metadata=metadata), policy, view=view, namespace="team", username=username).denied
    assert (RULE not in {finding.rule for finding in denied}) is trusted


def test_update_is_admitted_if_the_stored_job_also_lacks_the_required_value():
    policy = policy_of({"worker-readiness": {"enabled": True, "port": 22, "required": "deny"}})
    stored = mutate(mpijob(run_policy={"suspend": True}), policy).document
    resumed = copy.deepcopy(stored)
    resumed["spec"]["runPolicy"]["suspend"] = False
    assert violations(resumed, policy, old=stored) == {}
    policy = policy_of({"image-pull-secrets": {"secrets": ["s"], "required": "deny"}})
    with_secret = mpijob()
    with_secret["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["imagePullSecrets"] = [{"name": "s"}]
    assert violations(with_secret, policy, old=mpijob()) == {}
    assert list(violations(mpijob(), policy, old=with_secret)) == ["deny"]


@pytest.mark.parametrize("injection_id", list(injections.REGISTRY))
def test_injected_value_is_not_reported_as_missing(injection_id):
    policy = policy_of({entry: {"required": "deny"} for entry in injections.REGISTRY})
    assert violations(mutate(mpijob(), policy).document, policy) == {}


def test_injection_that_does_not_fit_the_object_is_not_reported():
    def clash(job, settings, ctx, patch):
        yield from ()
        raise PatchConflict("/kind", "does not fit the object")

    entry = Injection(id="clash", settings=InjectionSettings, inject=clash, since="0.1")
    policy = Policy(requiring().document, (), ((entry, InjectionSettings(required="deny")),))
    assert violations(mpijob(), policy) == {}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("spec", "mpiReplicaSpecs", "Worker", "template"), "spec.mpiReplicaSpecs[Worker].template"),
        (("metadata", "annotations", "a.b/c"), "metadata.annotations[a.b/c]"),
        (("spec", "containers", 0, "env"), "spec.containers[0].env"),
    ],
)
def test_patch_path_is_shown_as_a_field_path(path, shown):
    assert field(path) == shown
