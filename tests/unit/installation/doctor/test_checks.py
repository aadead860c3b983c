"""The checks of `doctor` on a healthy installation with one change."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from certs.authority import Authority
from certs.store import StoreError
from tests.support.doctor_facts import (
    CRASHING,
    FILES_MOUNTED,
    GOOD_KUEUE,
    HAS,
    HEALTHY,
    KUEUE,
    KUEUE_WEBHOOK,
    LEAF,
    MUTATING,
    NOW,
    OPERATOR,
    OTHER_KUEUE,
    UNREAD,
    VALIDATING,
    bundles,
    certificates,
    converted_crd,
    crd,
    denied,
    deployment,
    hook,
    named,
    stored,
    with_arguments,
    with_flags,
    with_kueue,
)
from tests.support.paths import ROOT
from webhook.client.access_reviews import Right
from webhook.client.calls import ApiError, ClusterError
from webhook.installation import registration
from webhook.installation.doctor import checks
from webhook.installation.doctor.checks.hooks import after_kueue
from webhook.installation.doctor.diagnosis import Severity
from webhook.installation.doctor.facts import Policies, Probe
from webhook.installation.doctor.unread import Unread, attempt
from webhook.parts.trainer.webhooks import hooks as trainer_hooks

CONVERTS = HAS | {
    Right(verb, "apiextensions.k8s.io", "customresourcedefinitions", "", "mpijobs.kubeflow.org"): True
    for verb in ("get", "patch")
}
HOOKS = trainer_hooks(registration.by_service("mpijob-webhook", "mpijob-webhook"), "mpijob-webhook")
WITH_TRAINER = stored({**VALIDATING, "webhooks": [*VALIDATING["webhooks"], *HOOKS]})
FOR_TRAINER = with_arguments("--trainer")
OF_TRAINER = HAS | dict.fromkeys(
    (
        Right(verb, "trainer.kubeflow.org", kind)
        for kind in ("trainingruntimes", "clustertrainingruntimes", "trainjobs")
        for verb in ("get", "list", "watch")
    ),
    True,
)


ASSUMES_VOLCANO = {"policies": Policies(1, gangs={"p": "volcano"})}


def limited_to(*kinds: str) -> Any:
    operator = deployment("kubeflow", "kubeflow/training-operator:v1-855e096")
    operator["spec"]["template"]["spec"]["containers"][0]["args"] = [f"--enable-scheme={kind}" for kind in kinds]
    return operator


# Changes of a healthy installation that cause no finding.
HARMLESS: dict[str, dict[str, Any]] = {
    "healthy": {},
    "older MPIJobs that are converted": {
        "crd": converted_crd(),
        "deployment": with_arguments("--conversion"),
        "rights": CONVERTS,
    },
    "operators of different namespaces": {"deployments": [with_flags("--namespace=a"), with_flags("--namespace=b")]},
    "a training operator for other kinds": {"deployments": [OPERATOR, limited_to("tfjob")]},
    "old operator without Kueue": {
        "deployments": [deployment("mpi-operator", "registry.example.com:5000/x/mpi-operator:v0.6.0")]
    },
    "operator of unknown version": {
        **with_kueue(GOOD_KUEUE),
        "deployments": [deployment("o", "x/mpi-operator@sha256:00"), KUEUE],
    },
    "an operator with the option that a policy assumes": {
        "deployments": [with_flags("--gang-scheduling=volcano")],
        **ASSUMES_VOLCANO,
    },
    "an operator with the value of the option in a separate argument": {
        "deployments": [with_flags("-gang-scheduling", "volcano")],
        **ASSUMES_VOLCANO,
    },
    "an operator with the value of the option in a variable": {
        "deployments": [with_flags("--gang-scheduling=$(GANG)")],
        **ASSUMES_VOLCANO,
    },
    "hooks for Trainer": {"validating": [WITH_TRAINER], "deployment": FOR_TRAINER, "rights": OF_TRAINER},
    "a hook with its operations in a different order": hook(
        "validate", rules=[{**VALIDATING["webhooks"][0]["rules"][0], "operations": ["UPDATE", "CREATE"]}]
    ),
    "Kueue": with_kueue(GOOD_KUEUE),
    "a probe job that is accepted": {"probe": Probe("team-a")},
    "a probe job that the service rejects": {
        "probe": Probe("team-a", 'admission webhook "validate.mpijob.training.openshift.io" denied the request: no')
    },
}
# Each case has changes of a healthy installation and the expected findings. A finding has an id and a part of its text.
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    **{case: (changes, {}) for case, changes in HARMLESS.items()},
    "old Kubernetes": ({"version": {"gitVersion": "v1.27.3+k3s1"}}, {"kubernetes-old": "v1.27.3"}),
    "no MPIJobs": ({"crd": None}, {"mpijobs-missing": "serves no MPIJobs of kubeflow.org/v2beta1"}),
    "older MPIJobs": ({"crd": crd("v1", "v1alpha2")}, {"mpijobs-missing": "only v1, v1alpha2"}),
    "older MPIJobs that are not converted": (
        {"crd": converted_crd()},
        {"conversion-off": "calls this service to convert v1, but --conversion is off"},
    ),
    "older MPIJobs without a conversion webhook": (
        {"crd": crd("v1", "v2beta1")},
        {"conversion-missing": "v1 of MPIJobs is served together with other versions, without a conversion webhook"},
    ),
    "nothing to convert": (
        {"deployment": with_arguments("--conversion"), "rights": CONVERTS},
        {"conversion-unused": "--conversion is set, but the CRD of MPIJobs does not call this service"},
    ),
    "no operator": ({"deployments": []}, {"operator-missing": "no operator starts them"}),
    "two operators": (
        {"deployments": [OPERATOR, deployment("kubeflow", "kubeflow/training-operator:v1-855e096")]},
        {"operators-several": "mpi-operator in mpi-operator, training-operator in kubeflow"},
    ),
    "two operators, one of them from Red Hat": (
        {
            "deployments": [
                OPERATOR,
                deployment("rhods", "registry.example.com/rhoai/odh-training-operator-rhel9@sha256:00"),
            ]
        },
        {"operators-several": "several operators reconcile MPIJobs, and each creates a launcher: mpi-operator in"},
    ),
    "the same operator twice": (
        {"deployments": [OPERATOR, deployment("kubeflow", "mpioperator/mpi-operator:0.8.0")]},
        {"operators-several": "mpi-operator in mpi-operator, mpi-operator in kubeflow"},
    ),
    "a training operator for MPIJobs too": (
        {"deployments": [OPERATOR, limited_to("tfjob", "mpijob")]},
        {"operators-several": "training-operator in kubeflow"},
    ),
    "old operator with Kueue": (
        {**with_kueue(GOOD_KUEUE), "deployments": [deployment("o", "mpi-operator:v0.7.9"), KUEUE]},
        {"operator-old": "mpi-operator v0.7.9 in o"},
    ),
    "an operator without the option that a policy assumes": (
        ASSUMES_VOLCANO,
        {
            "operator-gang": 'policy "p" assumes --gang-scheduling=volcano, but mpi-operator in mpi-operator runs '
            "without --gang-scheduling"
        },
    ),
    "an operator with a different value than a policy assumes": (
        {"deployments": [with_flags("--gang-scheduling=mine")], **ASSUMES_VOLCANO},
        {"operator-gang": "runs with --gang-scheduling=mine"},
    ),
    "an operator with an option that no policy assumes": (
        {"deployments": [with_flags("--gang-scheduling=volcano")]},
        {"operator-gang": "no policy says so: jobs whose gang never starts are admitted"},
    ),
    "no Deployment": ({"deployment": None}, {"deployment-missing": "no Deployment mpijob-webhook in mpijob-webhook"}),
    "no replica": (
        {"deployment": deployment("w", "i", ready=0), "pods": [CRASHING]},
        {"replicas-none": "no replica is ready (CrashLoopBackOff)"},
    ),
    "one replica of two": ({"deployment": deployment("w", "i", ready=1)}, {"replicas-few": "1 of 2 replicas"}),
    "a single replica": (
        {"deployment": deployment("w", "i", replicas=1, ready=1)},
        {"replicas-few": "a single replica"},
    ),
    "no Service": ({"service": None}, {"service-missing": "no Service mpijob-webhook"}),
    "a Service without endpoints": ({"endpoints": []}, {"service-empty": "its selector or port is wrong"}),
    "no configuration": (
        {"mutating": []},
        {"configuration-missing": "nothing is injected into jobs and jobs keep the SSH keys of the operator"},
    ),
    "a configuration with a name that sorts after Kueue's": (
        {**with_kueue(GOOD_KUEUE), **named("mpijob-webhook")},
        {"configuration-renamed": "has the name mpijob-webhook", "configuration-order": "called after kueue-mutating"},
    ),
    "an unknown hook": (
        {
            "validating": [
                {**stored(VALIDATING), "webhooks": [*stored(VALIDATING)["webhooks"], {"name": "old.example"}]}
            ]
        },
        {"hook-unknown": "old.example"},
    ),
    "no hook for policies": (
        {"validating": [{**stored(VALIDATING), "webhooks": stored(VALIDATING)["webhooks"][::2]}]},
        {"hook-missing": "broken policies are not rejected"},
    ),
    "hooks for Trainer without the option": (
        {"validating": [WITH_TRAINER]},
        {"hook-unknown": "does not belong to this version"},
    ),
    "no hooks for Trainer": (
        {"deployment": FOR_TRAINER, "rights": OF_TRAINER},
        {"hook-missing": "trainingruntimes are not checked"},
    ),
    "no right to read Trainer's runtimes": (
        {"validating": [WITH_TRAINER], "deployment": FOR_TRAINER},
        {"right-missing": "TrainJobs are admitted without a check"},
    ),
    "a hook that calls a different Service": (
        hook("mutate", clientConfig={"service": {"namespace": "x", "name": "y", "path": "/mutate-mpijob"}}),
        {"hook-elsewhere": "calls x/y/mutate-mpijob, not the Service mpijob-webhook/mpijob-webhook/mutate-mpijob"},
    ),
    "a hook that calls a URL": (
        hook("mutate", clientConfig={"url": "https://a/b"}),
        {"hook-elsewhere": "calls https://a/b"},
    ),
    "a hook with fewer operations": (
        hook("validate", rules=[{**VALIDATING["webhooks"][0]["rules"][0], "operations": ["CREATE"]}]),
        {"hook-rules": "validate.mpijob"},
    ),
    "a hook that fails open": (hook("validate", failurePolicy="Ignore"), {"hook-fails-open": "jobs are not checked"}),
    "a hook that fails closed": (hook("mutate", failurePolicy="Fail"), {"hook-fails-closed": "no job is stored"}),
    "a hook with a longer timeout": (hook("mutate", timeoutSeconds=30), {"hook-altered": "timeoutSeconds is not 5"}),
    "a hook for some namespaces": (
        hook("mutate", namespaceSelector={"matchLabels": {"a": "b"}}),
        {"hook-altered": "namespaceSelector"},
    ),
    "a hook with match conditions, for jobs": (
        hook("mutate", matchConditions=[{"name": "x"}]),
        {"hook-altered": "matchConditions"},
    ),
    "a hook without match conditions, for Secrets": (
        hook("ssh-keys", matchConditions=None),
        {"hook-altered": "matchConditions"},
    ),
    "a hook for Secrets that fails open": (
        hook("ssh-keys", failurePolicy="Ignore"),
        {"hook-fails-open": "jobs keep the SSH keys of the operator"},
    ),
    "no CA Secret": (certificates(data=None), {"certificate-secret-missing": "certificates are not renewed"}),
    "an empty CA Secret": (certificates(data={}), {"certificate-broken": "holds no CA"}),
    "a foreign caBundle": (
        certificates(bundles=bundles(Authority("x", lifetime=timedelta(days=1)).certificate_pem)),
        {"certificate-broken": "does not trust the served certificate"},
    ),
    "a leaf that has expired by the API server's clock": (
        {"server_time": NOW + timedelta(days=15)},
        {"certificate-broken": "the served certificate expired"},
    ),
    "a leaf that expires soon": (
        {"server_time": NOW + timedelta(days=12), "now": NOW + timedelta(days=12)},
        {"certificate-attention": "the served certificate expires at"},
    ),
    "a certificate for a different name": (
        certificates(server_name="a.b.svc"),
        {"certificate-broken": "the API server calls a.b.svc"},
    ),
    "a replica that cannot be reached": (
        certificates(served={}, unreached=["cannot reach 192.0.2.1:8443"]),
        {"certificate-unseen": "cannot be seen from here (cannot reach 192.0.2.1:8443)"},
    ),
    "certificate files, and no mounted Secret": (
        certificates(**FILES_MOUNTED, data=None),
        {"certificate-secret-missing": "no replica can start"},
    ),
    "certificate files, checked in the mounted Secret": (
        certificates(**FILES_MOUNTED, data={"tls.crt": LEAF.certificate_pem}, served={}),
        {"certificate-unseen": "the mounted Secret is checked instead"},
    ),
    "no right to list Jobs": (
        denied(Right("list", "batch", "jobs")),
        {"right-missing": "the service may not list jobs.batch: rules do not see them"},
    ),
    "no right to read a namespace": (
        denied(Right("get", "", "namespaces")),
        {
            "right-essential": "get namespaces: jobs in a namespace that is not cached yet get no verdict",
            "right-missing": "get namespaces: rules do not see them",
        },
    ),
    "a broken policy without a good copy": (
        {"policies": Policies(1, {"base": ("unusable", "line 3: no")})},
        {"policy-broken": "it has no effect, and replicas that start do not become ready: line 3: no"},
    ),
    "no right to change the CA Secret": (
        denied(Right("patch", "", "secrets", "mpijob-webhook", "mpijob-webhook-ca")),
        {"right-essential": "patch secrets/mpijob-webhook-ca in mpijob-webhook: certificates are not renewed"},
    ),
    "superfluous rights to Secrets": (
        denied(granted=(Right("list", "", "secrets"), Right("get", "", "secrets"))),
        {"secrets-open": "the service may get, list secrets, but does not need this right"},
    ),
    "a broken policy": (
        {"policies": Policies(1, {"base": ("last-good", "line 3: no\nline 4: no")})},
        {"policy-broken": 'policy "base" is broken, its last good document is in force: line 3: no; line 4: no'},
    ),
    "a policy without label": (
        {"policies": Policies(1, unlabelled=["base"])},
        {"policy-unlabelled": 'has no label training.openshift.io/mpijob-policy: "true"'},
    ),
    "a policy under another key": (
        {"policies": Policies(1, misplaced={"base": "base.yaml"})},
        {"policy-misplaced": 'ConfigMap "base" has a policy under base.yaml'},
    ),
    "a policy in a different namespace": (
        {"policies": Policies(1, elsewhere=[("team-a", "base")])},
        {"policy-elsewhere": 'policy "base" in namespace team-a has no effect'},
    ),
    "no permission to see policies in other namespaces": (
        {"policies": Policies(1, elsewhere=UNREAD)},
        {"not-known": "whether there are policies in other namespaces: no permission"},
    ),
    "Kueue without MPIJobs": (with_kueue(OTHER_KUEUE), {"kueue-without-mpijobs": "does not manage MPIJobs"}),
    "Kueue's broken configuration": (with_kueue("a: ["), {"kueue-config-unknown": "cannot be read"}),
    "Kueue's empty ConfigMap": (
        with_kueue(None),
        {"kueue-config-unknown": "controller_manager_config.yaml is missing"},
    ),
    "Kueue without a readable ConfigMap": (
        {**with_kueue(GOOD_KUEUE), "kueue_config": None},
        {"kueue-config-unknown": "not its ConfigMap"},
    ),
    "Kueue's webhook is called again": (
        {
            **with_kueue(GOOD_KUEUE),
            "mutating": [
                {**stored(MUTATING), "metadata": {"name": "z"}},
                {**KUEUE_WEBHOOK, "webhooks": [{"name": "mmpijob.kb.io", "reinvocationPolicy": "IfNeeded"}]},
            ],
        },
        {"configuration-renamed": "has the name z"},
    ),
    "a probe job that does not reach the service": (
        {"probe": Probe("team-a", 'failed calling webhook "validate.mpijob.training.openshift.io": x509')},
        {"probe-failed": "does not reach the service"},
    ),
    "no such namespace": ({"probe": Probe("team-a", 'namespaces "team-a" not found')}, {"probe-unknown": "not found"}),
    "an inconclusive probe": (
        {"probe": Probe("team-a"), **hook("validate", failurePolicy="Ignore")},
        {"probe-unknown": "it would also be accepted without the service", "hook-fails-open": "jobs are not checked"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_findings(case: str) -> None:
    changes, expected = CASES[case]
    diagnoses = {
        each.id: each for _, each in checks.run(replace(HEALTHY, **changes)) if each.severity is not Severity.OK
    }
    assert set(diagnoses) == set(expected)
    for id_, text in expected.items():
        assert text in diagnoses[id_].text
        assert diagnoses[id_].fix


def test_healthy_installation_has_one_line_for_every_check() -> None:
    lines = list(checks.run(replace(HEALTHY, probe=Probe("team-a"))))
    assert [name for name, _ in lines] == list(checks.CHECKS)


def test_every_kind_of_diagnosis_has_a_case() -> None:
    tried = {id_ for _, expected in CASES.values() for id_ in expected}
    assert {kind.id for kind in checks.kinds()} == tried


def test_ids_are_unique() -> None:
    ids = [kind.id for kind in checks.kinds()]
    assert len(ids) == len(set(ids))


OBJECTS = ("version", "mutating", "validating", "service", "endpoints", "deployment", "pods", "deployments", "crd")


@pytest.mark.parametrize("field", [*OBJECTS, "rights", "policies"])
def test_unreadable_object_is_unknown_and_not_a_problem(field: str) -> None:
    changed: dict[str, Any] = {field: UNREAD}
    diagnoses = [each for _, each in checks.run(replace(HEALTHY, **changed))]
    assert {each.severity for each in diagnoses} <= {Severity.OK, Severity.UNKNOWN}
    assert field == "version" or any("no permission" in each.text for each in diagnoses)


def test_everything_is_unknown_if_no_object_can_be_read() -> None:
    nothing: dict[str, Any] = dict.fromkeys([*OBJECTS, "kueue_config", "rights", "policies"], UNREAD)
    unread = certificates(data=UNREAD, bundles=UNREAD, served={})
    diagnoses = [each for _, each in checks.run(replace(HEALTHY, **nothing, **unread))]
    assert {each.severity for each in diagnoses} == {Severity.UNKNOWN}


@pytest.mark.parametrize(
    ("mutating", "ids"),
    [
        ([], []),
        ([MUTATING, KUEUE_WEBHOOK], []),
        (named("mpijob-webhook")["mutating"], ["configuration-order"]),
    ],
)
def test_configuration_that_sorts_after_kueues_is_found(mutating: list[Any], ids: list[str]) -> None:
    assert [each.id for each in after_kueue(mutating)] == ids


def test_runbook_explains_every_kind_of_diagnosis() -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text()
    for kind in checks.kinds():
        assert f"| `{kind.id}` | {kind.severity} | " in runbook, kind.id


FORBIDDEN = 'the API server at https://a refuses: pods is forbidden: User "u" cannot list resource "pods" (403)'


async def refused(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ApiError(403, FORBIDDEN), 'no permission to list resource "pods"'),
        (StoreError(FORBIDDEN), 'no permission to list resource "pods"'),
        (ApiError(500, "out of order"), "out of order"),
    ],
)
async def test_object_that_may_not_be_read_is_unread(error: Exception, reason: str) -> None:
    assert await attempt(refused(error)) == Unread(reason)


@pytest.mark.parametrize("error", [ApiError(401, "who?"), ClusterError("nobody there")])
async def test_unusable_cluster_raises_an_error(error: Exception) -> None:
    with pytest.raises(ClusterError):
        await attempt(refused(error))
