"""Updates of jobs that already break rules: an update that makes no violation worse is admitted."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.limit_ranges import limit_range
from tests.support.namespaces import labelled
from tests.support.pod_security.pods import COMPLIANT
from tests.support.rule_checks import decide
from tests.support.service_accounts import service_account
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView

Json = dict[str, Any]

BAD_IMAGE = "docker.io/library/train:latest"
REGISTRY = "images: {allowedRegistries: [registry.example.com]}"
GPU = "Worker.template.spec.containers.0.resources.limits.nvidia\\.com/gpu"
WORKER = "Worker.template.spec"
FIRST = f"{WORKER}.containers.0"
VOLUME = [{"name": "v", "configMap": {"name": "c"}}]
FILE = {"key": "A", "path": "env", "volumeName": "files"}


def denied(stored: Json, new: Json, rules: str = "", view: ClusterView | None = None) -> list[str]:
    """The rules that reject the update. The stored job must violate at least one rule."""
    policy = f"rules: {{{rules}}}"
    assert decide(stored, policy, view=view).denied
    return [finding.rule for finding in decide(new, policy, view=view, old=stored).denied]


def step(change: str, before: Any, after: Any, **more: Any) -> tuple[Json, Json]:
    """Return two jobs: the field `change` is `before` in the first job and `after` in the second job."""
    return changed({**more, change: before}), changed({**more, change: after})


DEADLINE, AVAILABLE = "spec.runPolicy.activeDeadlineSeconds", "spec.runPolicy.schedulingPolicy"
DEGREES = [
    ("worker-count", "Worker.replicas", 150, 120, ""),
    ("worker-count", "Worker.replicas", 2, 3, "worker-count: {min: 5}"),
    ("gpus", GPU, 24, 20, ""),
    ("gpus", GPU, 2, 3, "gpus: {min: 4}"),
    ("slots", "spec.slotsPerWorker", 20, 12, ""),
    ("slots", "spec.slotsPerWorker", 1, 2, "slots: {min: 4}"),
    ("tier", "Worker.replicas", 12, 10, "tier: {maxWorkers: 8}"),
    ("tier", GPU, 8, 4, "tier: {maxGpus: 8}"),
    ("job-timeout", DEADLINE, 900_000, 800_000, ""),
    ("retention", "spec.runPolicy.ttlSecondsAfterFinished", 1, 10, "retention: {action: deny}"),
    ("gang", AVAILABLE, {"minAvailable": 20}, {"minAvailable": 10}, "gang: {scheduler: volcano}"),
    ("gang", AVAILABLE, {"scheduleTimeoutSeconds": 90}, {"scheduleTimeoutSeconds": 80},
     "gang: {maxScheduleTimeoutSeconds: 60}"),
    ("upstream-contract", "spec.runPolicy.backoffLimit", -3, -2, ""),
    ("upstream-contract", "Launcher.replicas", 3, 2, ""),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "change", "worse", "better", "settings"), DEGREES)
class TestDegrees:
    def test_reduced_fault_is_admitted(self, rule: str, change: str, worse: Any, better: Any, settings: str) -> None:
        assert denied(*step(change, worse, better), settings) == []

    def test_increased_fault_is_rejected(self, rule: str, change: str, worse: Any, better: Any, settings: str) -> None:
        assert denied(*step(change, better, worse), settings) == [rule]


def test_job_with_a_too_long_name_may_be_scaled_down() -> None:
    more = {"metadata.name": "x" * 54}
    assert denied(*step("Worker.replicas", 90, 40, **more)) == []
    assert denied(*step("Worker.replicas", 40, 101, **more), "worker-count: {max: 200}") == ["upstream-contract"]


def test_unset_min_available_is_the_same_violation_with_any_number_of_pods() -> None:
    """Only the messages differ, because they contain the number of pods."""
    settings = "gang: {scheduler: scheduler-plugins}"
    more = {"spec.launcherCreationPolicy": "WaitForWorkersReady"}
    for before, after in ((6, 4), (4, 6)):
        assert denied(*step("Worker.replicas", before, after, **more), settings) == []


def test_too_low_value_is_not_better_than_a_too_high_value() -> None:
    assert denied(*step("Worker.replicas", 150, 1)) == ["worker-count"]
    assert denied(*step("spec.slotsPerWorker", 20, 0)) == ["slots"]


def containers(*images: tuple[str, str]) -> Json:
    items = [{"name": name, "image": image} for name, image in images]
    return changed({f"{WORKER}.containers": items})


GOOD_IMAGE = "registry.example.com/a:1"


class TestNames:
    """Violations of containers and volumes are compared by the names of these items."""

    STORED = containers(("main", GOOD_IMAGE), ("old", BAD_IMAGE))

    def test_valid_container_may_be_inserted_before_an_invalid_one(self) -> None:
        new = containers(("main", GOOD_IMAGE), ("new", GOOD_IMAGE), ("old", BAD_IMAGE))
        assert denied(self.STORED, new, REGISTRY) == []

    def test_new_invalid_container_is_rejected_next_to_an_old_one(self) -> None:
        new = containers(("main", GOOD_IMAGE), ("new", BAD_IMAGE), ("old", BAD_IMAGE))
        assert denied(self.STORED, new, REGISTRY) == ["images"]
        assert denied(self.STORED, containers(("main", BAD_IMAGE), ("old", GOOD_IMAGE)), REGISTRY) == ["images"]

    def test_init_containers_are_compared_separately(self) -> None:
        new = changed({f"{WORKER}.initContainers": [{"name": "old", "image": BAD_IMAGE}]}, containers(("main", "x")))
        assert denied(self.STORED, new, REGISTRY) == ["images", "images"]

    def test_containers_of_different_roles_are_compared_separately(self) -> None:
        stored = changed({f"{WORKER}.containers.0": {"name": "same", "image": BAD_IMAGE}})
        new = changed({"Launcher.template.spec.containers.0": {"name": "same", "image": BAD_IMAGE}})
        assert "images" in denied(stored, new, REGISTRY)

    def test_volumes_are_compared_by_name(self) -> None:
        bad = {"name": "old", "image": {"reference": BAD_IMAGE}}
        stored = changed({f"{WORKER}.volumes": [bad]})
        assert denied(stored, changed({f"{WORKER}.volumes": [{"name": "new", "emptyDir": {}}, bad]}), REGISTRY) == []
        assert denied(stored, changed({f"{WORKER}.volumes": [bad, {**bad, "name": "new"}]}), REGISTRY) == ["images"]

    def test_images_that_differ_only_beyond_the_cut_in_messages_are_different(self) -> None:
        long = f"evil.example.com/{'a' * 90}"
        for rules in (REGISTRY, "images: {requireDigest: true}", "images: {refuseLatest: true}"):
            stored = containers(("main", f"{long}/old"))
            assert denied(stored, changed({"metadata.labels": {"a": "b"}}, stored), rules) == []
            assert denied(stored, containers(("main", f"{long}/new")), rules) == ["images"]

    def test_different_tag_is_admitted_where_digests_are_required(self) -> None:
        """The policy was added after the job was created."""
        rules = "images: {requireDigest: true}"
        stored = containers(("main", "registry.example.com/a:1"))
        for image, name in (("registry.example.com/a:2", "main"), ("registry.example.com/a:1", "trainer")):
            assert denied(stored, containers((name, image)), rules) == []
        assert denied(stored, containers(("main", "registry.example.com/b:1")), rules) == ["images"]
        assert denied(stored, containers(("main", "evil.example.com/a:1")), rules) == ["images"]
        twice = containers(("main", "registry.example.com/a:1"), ("new", "registry.example.com/a:2"))
        assert denied(stored, twice, rules) == ["images"]
        assert denied(twice, stored, rules) == []
        more = containers(("main", "registry.example.com/a:1"), ("new", "registry.example.com/b:1"))
        assert denied(stored, more, rules) == ["images"]

    @pytest.mark.parametrize(
        "fault",
        [
            {f"{FIRST}.volumeMounts": [{"name": "v", "mountPath": "/root/.ssh/config"}], f"{WORKER}.volumes": VOLUME},
            {f"{WORKER}.resources": {"limits": {"memory": "1Gi"}}},
            {f"{FIRST}.env": [{"name": "A", "valueFrom": {"fileKeyRef": FILE}}]},
        ],
    )
    def test_renamed_container_is_admitted_with_its_old_violation(self, fault: Json) -> None:
        """The job was created before the rule existed."""
        stored = changed(fault)
        renamed = changed({f"{FIRST}.name": "trainer"}, stored)
        assert denied(stored, renamed) == []
        there = stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
        assert denied(stored, changed({f"{WORKER}.containers": [{**there[0], "name": "new"}, *there]}, stored))

    def test_violations_of_items_without_names_are_counted(self) -> None:
        def mounts(*paths: str) -> Json:
            mounted = [{"name": "v", "mountPath": path} for path in paths]
            return changed({f"{WORKER}.volumes": [{"name": "v"}], f"{WORKER}.containers.0.volumeMounts": mounted})

        stored = mounts("/root/.ssh")
        assert denied(stored, mounts("/data", "/root/.ssh")) == []
        assert "upstream-contract" in denied(stored, mounts("/root/.ssh", "/root/.ssh"))

    def test_nameless_containers_are_compared_by_position(self) -> None:
        stored = containers(("", GOOD_IMAGE), ("", BAD_IMAGE))
        assert denied(stored, changed({"spec.runPolicy.cleanPodPolicy": "All"}, stored), REGISTRY) == []
        assert denied(stored, containers(("", BAD_IMAGE), ("", GOOD_IMAGE)), REGISTRY) == ["images"]


def context(base: Mapping[str, Any] = COMPLIANT, **changes: Any) -> Json:
    return {key: value for key, value in {**base, **changes}.items() if value is not REMOVE}


ADDS_TWO = context(capabilities={"add": ["SYS_ADMIN", "NET_ADMIN"]})


class TestPodSecurity:
    """The namespace enforces a level that it did not enforce when the job was created."""

    VIEW = labelled(enforce="restricted")

    def job(self, **contexts: Any) -> Json:
        items = [{"name": name, "image": "x:1", "securityContext": each} for name, each in contexts.items()]
        launcher = {"Launcher.template.spec.containers.0.securityContext": COMPLIANT}
        return changed({**launcher, f"{WORKER}.containers": items})

    @pytest.mark.parametrize(
        ("first", "second", "mended"),
        [
            ({}, {}, COMPLIANT),
            (context(runAsNonRoot=False), context(runAsNonRoot=REMOVE), COMPLIANT),
            (context(seccompProfile={"type": "Unconfined"}), context(seccompProfile=REMOVE), COMPLIANT),
            (ADDS_TWO, COMPLIANT, context(capabilities={"add": ["NET_ADMIN"]})),
            (context(capabilities={"drop": ["CHOWN"]}), COMPLIANT, context(capabilities={"drop": ["CHOWN", "KILL"]})),
            (context(capabilities={"drop": []}), COMPLIANT, context(capabilities={"drop": ["KILL"]})),
            ({**context(runAsNonRoot=False), "privileged": True}, {}, context(runAsNonRoot=False)),
        ],
    )  # fmt: skip
    def test_partly_fixed_job_is_admitted(self, first: Json, second: Json, mended: Json) -> None:
        stored, new = self.job(a=first, b=second), self.job(a=mended, b=second)
        assert denied(stored, new, view=self.VIEW) == []

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (context(capabilities={"add": ["NET_ADMIN"]}), context(capabilities={"add": ["NET_ADMIN", "SYS_ADMIN"]})),
            (context(capabilities={"add": ["NET_ADMIN"]}), context(capabilities={"add": ["SYS_ADMIN"]})),
            (context(runAsNonRoot=REMOVE), context(runAsNonRoot=False)),
            (context(runAsNonRoot=REMOVE), {**context(runAsNonRoot=REMOVE), "privileged": True}),
        ],
    )
    def test_job_with_more_faults_is_rejected(self, before: Json, after: Json) -> None:
        # The API server rejects a privileged container with allowPrivilegeEscalation: false.
        others = {"pod-template"} if after.get("privileged") else set()
        assert set(denied(self.job(a=before), self.job(a=after), view=self.VIEW)) == {"pod-security"} | others

    def test_fault_moved_to_another_container_is_rejected(self) -> None:
        stored, new = self.job(a={}, b=COMPLIANT), self.job(a=COMPLIANT, b={})
        assert set(denied(stored, new, view=self.VIEW)) == {"pod-security"}

    def test_different_host_path_is_a_new_violation(self) -> None:
        def mounts(path: str) -> Json:
            return changed({f"{WORKER}.volumes": [{"name": "data", "hostPath": {"path": path}}]})

        view = labelled(enforce="baseline")
        assert denied(mounts("/data"), changed({"metadata.labels": {"a": "b"}}, mounts("/data")), view=view) == []
        assert denied(mounts("/data"), mounts("/"), view=view) == ["pod-security"]

    def test_compliant_container_may_be_inserted(self) -> None:
        assert denied(self.job(old={}), self.job(new=COMPLIANT, old={}), view=self.VIEW) == []
        assert set(denied(self.job(old={}), self.job(new={}, old={}), view=self.VIEW)) == {"pod-security"}


def test_uncertain_violation_is_rejected_when_it_becomes_certain() -> None:
    """While the job is suspended, the violation is uncertain: the other pod may be gone when the job starts."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "x", "uid": "x", "controller": True}
    labels = {"training.kubeflow.org/job-name": "x"}
    metadata = {"name": "train-worker-0", "namespace": "team-a", "labels": labels, "ownerReferences": [owner]}
    view = Snapshot([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata}])
    stored = changed({"spec.runPolicy.suspend": True, "Worker.replicas": 150})
    assert denied(stored, changed({"spec.runPolicy.suspend": False}, stored), view=view) == ["child-names"]


@pytest.mark.parametrize(
    ("bound", "worse", "better"),
    [
        ({"max": {"cpu": "4"}}, "16", "8"),
        ({"min": {"cpu": "32"}}, "8", "16"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "64", "32"),
    ],
)
def test_amount_that_moves_closer_to_the_limit_range_is_admitted(bound: Json, worse: str, better: str) -> None:
    view = Snapshot([limit_range("a", {"type": "Container", **bound})])

    def job(amount: str) -> Json:
        request = "8" if "maxLimitRequestRatio" in bound else amount
        resources = {"requests": {"cpu": request}, "limits": {"cpu": amount}}
        return changed({f"{WORKER}.containers.0.resources": resources})

    assert denied(job(worse), job(better), view=view) == []
    assert denied(job(better), job(worse), view=view) == ["limit-range"]


def claim(storage_class: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "team-a"},
        "spec": {"storageClassName": storage_class},
    }


AWAY = {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}
HERE = {"spec.runPolicy.managedBy": "kubeflow.org/mpi-operator"}
STARTS = [({"spec.runPolicy.suspend": True}, {"spec.runPolicy.suspend": False}), (AWAY, HERE)]


@pytest.mark.parametrize(("waits", "starts"), STARTS, ids=["resumed", "moved to this cluster"])
def test_resumed_job_is_checked_against_the_changed_cluster(waits: Json, starts: Json) -> None:
    rules = "compliance: {action: deny, markers: {}, storageClasses: [encrypted]}"
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    stored = changed({f"{WORKER}.volumes": volumes, **waits})
    view = Snapshot([claim("plain")])
    assert denied(stored, changed(starts, stored), rules, view) == ["compliance"]
    assert denied(stored, changed({"metadata.labels": {"a": "b"}}, stored), rules, view) == []
    inline = changed({f"{WORKER}.volumes": [{"name": "n", "nfs": {"server": "s", "path": "/"}}]}, stored)
    assert denied(inline, changed(starts, inline), rules, view) == [], "the fault is not new"


def test_resuming_is_rejected_if_the_service_account_gives_a_token() -> None:
    suspended = changed({"spec.runPolicy.suspend": True})
    resumed = changed({"spec.runPolicy.suspend": False}, suspended)
    rules, view = "api-access: {action: deny}", Snapshot([service_account("default", token=True)])
    assert denied(suspended, resumed, rules, view) == ["api-access"] * 2
    assert denied(suspended, resumed, rules) == [], "an account that cannot be read causes no rejection"
    chosen = changed({f"{role}.template.spec.automountServiceAccountToken": True for role in ("Launcher", "Worker")})
    stored = changed({"spec.runPolicy.suspend": True}, chosen)
    assert denied(stored, changed({"spec.runPolicy.suspend": False}, stored), rules, view) == [], "the fault is not new"
