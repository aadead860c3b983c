"""The injection `security-context` sets missing fields if the Pod Security level `restricted` is enforced."""

import json
from random import Random

import pytest

from tests.support.injecting import mpijob, only, pod_spec
from tests.support.jobs import request
from tests.support.namespaces import labelled
from tests.support.pod_security.edges import all_containers
from tests.support.pod_security.pods import compliant_pod, pod
from webhook.admission import pipelines
from webhook.cluster.view import NothingKnown
from webhook.policy.in_force import load_policy
from webhook.predict.pod_security import Level, Version, evaluate
from webhook.predict.pod_security.pod import templates

RESTRICTED = labelled("team", enforce="restricted")
ONLY_THIS = only("security-context")
DROPPED = {"drop": ["ALL"]}
FILLED = {
    "allowPrivilegeEscalation": False,
    "capabilities": DROPPED,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
MAY_ESCALATE = {key: value for key, value in FILLED.items() if key != "allowPrivilegeEscalation"}
WORKERS = {**FILLED, "capabilities": {**DROPPED, "add": ["NET_BIND_SERVICE"]}}
CONTAINER = pod_spec()["containers"][0]


def mutated(job, view=RESTRICTED, policy=ONLY_THIS, **fields):
    return pipelines.mutate(request(job, namespace="team", **fields), policy=policy, view=view)


def contexts(job, **fields):
    """The security contexts of the mutated job's containers by `Role/container`."""
    decision = mutated(job, **fields)
    assert not decision.skipped
    return {
        f"{role}/{container['name']}": container.get("securityContext")
        for role, replica in decision.document["spec"]["mpiReplicaSpecs"].items()
        for kind in ("initContainers", "containers")
        for container in replica["template"]["spec"].get(kind, [])
    }


def launcher(job, **fields):
    """The security context of the launcher's container in the mutated job."""
    return contexts(job, **fields)["Launcher/mpi"]


def with_context(context, **pod):
    """A job whose launcher's container has this security context."""
    return mpijob(launcher={"spec": pod_spec(containers=[{**CONTAINER, "securityContext": context}], **pod)})


@pytest.mark.parametrize(
    "view",
    [
        NothingKnown(),
        labelled("other", enforce="restricted"),
        labelled("team"),
        labelled("team", enforce="privileged"),
        labelled("team", enforce="baseline"),
        labelled("team", warn="restricted", audit="restricted"),
    ],
)
def test_nothing_is_injected_if_the_level_restricted_is_not_enforced(view):
    decision = mutated(mpijob(), view)
    assert (decision.patch, decision.notes) == ([], [])


def with_floor(exemptions=(), **settings):
    """A policy with this injection alone. Its floor is a level that applies in addition to the namespace's labels."""
    document = {
        "apiVersion": "policy.training.openshift.io/v1",
        "kind": "MPIJobPolicy",
        "rules": {"pod-security": {"floor": "restricted", **settings}},
        "injectOnly": ["security-context"],
        "exemptions": list(exemptions),
    }
    return load_policy(json.dumps(document))


FLOOR = with_floor()


@pytest.mark.parametrize("view", [NothingKnown(), labelled("team"), labelled("team", enforce="baseline")])
def test_floor_of_the_policy_has_the_effect_of_the_label(view):
    assert contexts(mpijob(), view=view, policy=FLOOR) == {"Launcher/mpi": FILLED, "Worker/mpi": WORKERS}
    assert mutated(mpijob(), view, FLOOR).told["security-context"] == [
        "added allowPrivilegeEscalation, capabilities, runAsNonRoot, seccompProfile for restricted:latest"
    ]


@pytest.mark.parametrize(
    ("settings", "context"),
    [
        ({"floorVersion": "v1.18"}, {"allowPrivilegeEscalation": False, "runAsNonRoot": True}),
        ({"floor": "baseline"}, None),
        ({"action": "warn"}, None),  # a job below the floor is admitted, so it may run as root
        ({"action": "off"}, None),
    ],
)
def test_floor_applies_only_if_the_policy_rejects_jobs_below_it(settings, context):
    assert launcher(mpijob(), view=labelled("team"), policy=with_floor(**settings)) == context


def test_version_in_the_labels_overrides_the_version_of_the_floor():
    floor = with_floor(floorVersion="v1.18")
    assert launcher(mpijob(), view=labelled("team", enforce="restricted"), policy=floor) == FILLED


@pytest.mark.parametrize("expires", [None, "2020-01-01"])
def test_job_that_is_exempt_from_the_floor_may_run_as_root(expires):
    """The validating hook decides whether an exemption has expired."""
    exemption = {"rules": ["pod-security"], "users": ["alice"], "reason": "old image", "expires": expires}
    floor = with_floor([exemption])
    assert launcher(mpijob(), view=labelled("team"), policy=floor, username="alice") is None
    assert launcher(mpijob(), view=labelled("team"), policy=floor, username="bob") == FILLED
    assert launcher(mpijob(), policy=floor, username="alice") == FILLED  # the label enforces restricted


def test_job_that_requests_an_exemption_from_the_floor_stays_unchanged():
    exemption = {"training.openshift.io/exempt": "pod-security", "training.openshift.io/exempt-reason": "old image"}
    exempt = mpijob(metadata={"annotations": exemption})
    assert launcher(exempt, view=labelled("team"), policy=FLOOR) is None


@pytest.mark.parametrize("level", ["restricted", "oops"])  # Pod Security reads an invalid label as restricted
def test_every_container_gets_the_missing_fields(level):
    spec = pod_spec(initContainers=[{"name": "fetch"}], containers=[CONTAINER, {"name": "sidecar"}])
    job = mpijob(launcher={"spec": spec}, worker={"spec": spec})
    assert contexts(job, view=labelled("team", enforce=level)) == {
        "Launcher/fetch": FILLED,
        "Launcher/mpi": FILLED,
        "Launcher/sidecar": FILLED,
        "Worker/fetch": FILLED,
        "Worker/mpi": WORKERS,
        "Worker/sidecar": FILLED,
    }


def test_note_names_the_added_fields():
    notes = mutated(mpijob()).notes
    fields = "allowPrivilegeEscalation, capabilities, runAsNonRoot, seccompProfile"
    assert notes == [f"security-context: added {fields} for restricted:latest"]
    job = with_context(FILLED)
    del job["spec"]["mpiReplicaSpecs"]["Worker"]
    assert mutated(job).notes == []


def test_net_bind_service_is_not_added_if_the_setting_is_false():
    assert contexts(mpijob(), policy=only("security-context", netBindService=False))["Worker/mpi"] == FILLED


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, FILLED),
        ({"runAsUser": 0}, {"runAsUser": 0}),  # the injection cannot make a root container valid
        ({"runAsNonRoot": False}, {**FILLED, "runAsNonRoot": False}),
        ({"allowPrivilegeEscalation": True}, {**FILLED, "allowPrivilegeEscalation": True}),
        # The API server rejects `allowPrivilegeEscalation: false` in the next two contexts.
        ({"privileged": True}, {**MAY_ESCALATE, "privileged": True}),
        (
            {"capabilities": {"add": ["CAP_SYS_ADMIN"]}},
            {**MAY_ESCALATE, "capabilities": {"add": ["CAP_SYS_ADMIN"], **DROPPED}},
        ),
        ({"capabilities": {"add": ["IPC_LOCK"]}}, {**FILLED, "capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}}),
        ({"seccompProfile": {"type": "Unconfined"}}, {**FILLED, "seccompProfile": {"type": "Unconfined"}}),
    ],
)
def test_fields_of_the_user_stay(context, expected):
    assert launcher(with_context(context)) == expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"drop": ["ALL"]}, {"drop": ["ALL"]}),  # the user has chosen the dropped capabilities
        ({"add": ["NET_BIND_SERVICE"]}, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
        ({"add": []}, {"drop": ["ALL"], "add": []}),
        ({"add": None}, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    ],
)
def test_capabilities_that_the_user_set_in_a_worker_stay(own, expected):
    job = mpijob(worker={"spec": pod_spec(containers=[{**CONTAINER, "securityContext": {"capabilities": own}}])})
    assert contexts(job)["Worker/mpi"]["capabilities"] == expected


@pytest.mark.parametrize(
    ("pod_context", "missing"),
    [
        ({"runAsNonRoot": True}, {"runAsNonRoot"}),
        ({"runAsNonRoot": False}, {"runAsNonRoot"}),
        ({"runAsUser": 0}, set(FILLED)),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, {"seccompProfile"}),
        ({"seccompProfile": {"type": "Unconfined"}}, {"seccompProfile"}),
        ({"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}, {"runAsNonRoot", "seccompProfile"}),
        ({"runAsUser": 1000, "fsGroup": 1000}, set()),
    ],
)
def test_fields_in_the_security_context_of_the_pod_are_not_added(pod_context, missing):
    expected = {key: value for key, value in FILLED.items() if key not in missing}
    assert (launcher(mpijob(launcher={"spec": pod_spec(securityContext=pod_context)})) or {}) == expected


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("v1.0", {"runAsNonRoot"}),
        ("v1.8", {"runAsNonRoot", "allowPrivilegeEscalation"}),
        ("v1.19", {"runAsNonRoot", "allowPrivilegeEscalation", "seccompProfile"}),
        ("v1.22", set(FILLED)),
        ("v1.99", set(FILLED)),
    ],
)
def test_only_fields_that_the_version_requires_are_added(version, fields):
    view = labelled("team", enforce="restricted", enforce_version=version)
    assert launcher(mpijob(), view=view) == {key: value for key, value in FILLED.items() if key in fields}


@pytest.mark.parametrize("version", ["v1.24", "latest"])
def test_windows_pod_gets_no_fields_of_linux(version):
    view = labelled("team", enforce="restricted", enforce_version=version)
    assert launcher(mpijob(launcher={"spec": pod_spec(os={"name": "windows"})}), view=view) == {"runAsNonRoot": True}


@pytest.mark.parametrize(("version", "missing"), [("v1.34", set()), ("v1.35", {"runAsNonRoot"})])
def test_field_run_as_non_root_is_not_added_in_a_user_namespace(version, missing):
    view = labelled("team", enforce="restricted", enforce_version=version)
    job = mpijob(launcher={"spec": pod_spec(hostUsers=False)})
    assert launcher(job, view=view) == {key: value for key, value in FILLED.items() if key not in missing}


def test_invalid_template_stays_unchanged():
    after = contexts(mpijob(launcher={"spec": pod_spec(hostPID="yes")}))
    assert (after["Launcher/mpi"], after["Worker/mpi"]) == (None, WORKERS)


@pytest.mark.parametrize("seed", range(200))
def test_job_with_filled_in_fields_satisfies_the_level_restricted(seed):
    rng = Random(seed)
    template = compliant_pod(rng)
    for owner in (template["spec"], *all_containers(template["spec"])):
        for key in [key for key in owner.get("securityContext", {}) if rng.random() < 0.6]:
            del owner["securityContext"][key]
    minor = rng.choice((0, 8, 20, 24, 30, 34, 35, 37))
    job = mpijob(launcher={"spec": template["spec"]})
    filled = by_role(mutated(job, labelled("team", enforce="restricted", enforce_version=f"v1.{minor}")).document)
    assert evaluate(Level.RESTRICTED, Version(minor), filled["Launcher"]) == []


@pytest.mark.parametrize("seed", range(200))
def test_injection_adds_no_new_fault(seed):
    rng = Random(seed)
    job = mpijob(**{role: {key: pod(rng)[key] for key in ("metadata", "spec")} for role in ("launcher", "worker")})
    minor = rng.choice((0, 8, 20, 24, 30, 34, 35, 37))
    view = labelled("team", enforce="restricted", enforce_version=f"v1.{minor}")
    decision = mutated(job, view)
    assert mutated(decision.document, view).patch == []
    before = by_role(job)
    for role, template in by_role(decision.document).items():
        paths = [p for result in evaluate(Level.RESTRICTED, Version(minor), before[role]) for p in result.paths]
        for result in evaluate(Level.RESTRICTED, Version(minor), template):
            assert set(result.paths) <= set(paths)


def by_role(job):
    return {role: template for role, _, template in templates(json.dumps(job).encode())}
