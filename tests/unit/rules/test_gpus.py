from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.devices import claim_template, claims, device_class, exactly, shared_claim
from tests.support.jobs import REMOVE
from tests.support.limit_ranges import limit_range
from tests.support.nodes import node
from tests.support.rule_checks import as_texts, fits_a_warning, violations
from tests.support.snapshots import head
from webhook.admission.messages import Finding
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason, Violation
from webhook.rules.gpus import Settings

GPU = "nvidia.com/gpu"
WORKER = "spec.mpiReplicaSpecs[Worker].template.spec.containers"
LAUNCHER = "spec.mpiReplicaSpecs[Launcher].template.spec.containers"
LIMIT = f"{WORKER}[0].resources.limits[{GPU}]"
REQUEST = f"{WORKER}[0].resources.requests[{GPU}]"
# The cluster has no ResourceClaimTemplates and no DeviceClasses.
NONE = head("resourceclaimtemplates", "deviceclasses")
AS_WORKER = {"spec.runLauncherAsWorker": True}


CORES = "aws.amazon.com/neuroncore"


def gpus(limit: Any = None, request: Any = None, role: str = "Worker", name: str = GPU) -> Json:
    """Changes that set the resources of the first container. A limit or request that is None is left out."""
    resources = {
        "limits": {} if limit is None else {name: limit},
        "requests": {} if request is None else {name: request},
    }
    return {f"{role}.template.spec.containers.0.resources": resources}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("nvidia.com/gpus", GPU), ("nvidia.com/GPU", GPU), ("amd.com/GPUs", "amd.com/gpu"), ("nvidia/gpu", GPU)],
)
def test_misspelt_accelerator_is_rejected_if_nodes_are_unknown(name: str, meant: str) -> None:
    [violation] = violations("gpus", gpus(2, name=name))
    assert (violation.message, violation.fix) == (f"no node has the resource {name}", f"Rename it to {meant}.")
    assert violations("gpus", gpus(2, name=name), view=Snapshot([node("a")])) == []
    both = {"Worker.template.spec.containers.0.resources": {"limits": {name: 2, meant: 2}}}
    assert [violation.fix for violation in violations("gpus", both)] == ["Remove it."]


@pytest.mark.parametrize("name", ["nvdia.com/gpu", "nvidia.co/gpu", "gpu.nvidia.com/gpu"])
def test_misspelt_vendor_is_a_warning(name: str) -> None:
    [violation] = violations("gpus", gpus(2, name=name))
    assert (violation.message, violation.fix) == (f"no node has the resource {name}", f"Rename it to {GPU}.")
    assert violation.advisory, "another vendor may have a resource of this name"


@pytest.mark.parametrize(
    "name", ["nvidia.com/gpumem", "nvidia.com/vgpu", "metax-tech.com/gpu", "run.ai/gpu", "a.com/x"]
)
def test_resource_of_another_vendor_is_accepted(name: str) -> None:
    assert violations("gpus", gpus(2, name=name)) == []


def test_misspelt_accelerator_without_a_limit_is_reported_twice() -> None:
    result = violations("gpus", gpus(request=2, name="nvidia.com/gpus"))
    assert [(each.path[-22:], each.fix) for each in result] == [
        ("equests[nvidia.com/gpus]"[-22:], f"Rename it to {GPU}."), (".limits[nvidia.com/gpu]"[-22:], "Set it to 2."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({}, {}),
        ({"Worker.template.spec.containers.0.resources": REMOVE}, {}),
        ({"Worker.template.spec.containers.0.resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "two"}}}, {}),
        ({"Worker": REMOVE}, {}),
        ({"Worker.template.spec": REMOVE, "Launcher.template.spec.containers": []}, {}),
        (gpus(0), {}),
        (gpus(0, 0), {}),
        (gpus(16), {}),
        (gpus("16", 16), {}),
        (gpus("4", "4000m"), {}),
        (gpus("two"), {}),  # the rule `upstream-contract` reports invalid quantities
        (gpus(2, "two"), {}),
        (gpus(-1, -1), {}),
        (gpus("-2"), {}),
        (gpus("two", 2), {}),
        (gpus(2, name="nvidia.com/mig-1g.5gb"), {}),
        (gpus(99, name="rdma/hca"), {}),
        (gpus(17), {"max": 17}),
        (gpus(32, name=CORES), {}),
        (gpus(128, name=CORES), {"max": 1}),
        (gpus(32, name=CORES, role="Launcher") | gpus(32, name=CORES) | AS_WORKER, {}),
        (gpus("0.5"), {"resources": []}),
        (gpus(2) | gpus(2, role="Launcher") | AS_WORKER, {}),
        (gpus(0, name="amd.com/gpu", role="Launcher"), {}),
        ({"Launcher.template.spec.containers": [{}, {"resources": {"limits": {GPU: 2}}}]}, {"max": 2, "min": 1}),
    ],
)
def test_valid_request_is_accepted(changes: Json, settings: Json) -> None:
    assert violations("gpus", changes, settings=settings) == []


OR_MORE = "or more in resources.limits."
NOT_WHOLE = "is not whole, and GPUs are not divided"


@pytest.mark.parametrize(
    ("changes", "path", "message", "fix"),
    [
        (gpus("500m", "0.5"), LIMIT, f"500m {NOT_WHOLE}", "Set it to 1, in requests too."),
        (gpus(2, "1500m"), REQUEST, f"1500m {NOT_WHOLE}", "Set it to 2."),
        (gpus(None, 2), LIMIT, "is missing, but the request is 2", "Set it to 2."),
        (
            gpus(4, 2),
            REQUEST,
            "2 differs from the limit of 4, and GPUs are not overcommitted",
            "Set it to 4, or remove it: the limit applies.",
        ),
    ],
)
def test_invalid_request_of_a_container_is_rejected(changes: Json, path: str, message: str, fix: str) -> None:
    reason = CauseReason.REQUIRED if "missing" in message else CauseReason.INVALID
    assert violations("gpus", changes) == [Violation(path, message, fix=fix, reason=reason)]


@pytest.mark.parametrize(
    ("changes", "settings", "path", "message", "fix"),
    [
        (
            gpus(17),
            {},
            WORKER,
            "a worker requests 17 GPUs, at most 16 allowed",
            "Request 16 or fewer for each, and use more workers.",
        ),
        (
            gpus(1) | {"Launcher.template.spec.containers": [{}, {"resources": {"limits": {GPU: 16}}}]},
            {"max": 1},
            LAUNCHER,
            "the launcher requests 16 GPUs, at most 1 allowed",
            "Request 1 or fewer for each.",
        ),
        (gpus(1), {"min": 2}, WORKER, "a worker requests 1 GPU, at least 2 required", f"Request 2 {OR_MORE}"),
        (
            gpus(17),
            {"max": 17, "min": 17, "resources": ["amd.com/*"]},
            WORKER,
            "a worker requests 0 GPUs, at least 17 required",
            f"Request 17 {OR_MORE}",
        ),
        (
            gpus(1, role="Launcher") | gpus(2) | AS_WORKER,
            {"min": 2},
            LAUNCHER,
            "the launcher, which is a worker, requests 1 GPU, at least 2 required",
            f"Request 2 {OR_MORE}",
        ),
    ],
)
def test_number_of_gpus_outside_the_limits_is_rejected(
    changes: Json, settings: Json, path: str, message: str, fix: str
) -> None:
    assert violations("gpus", changes, settings=settings) == [Violation(path, message, fix=fix)]


def test_other_accelerator_of_a_launcher_that_is_a_worker_is_rejected() -> None:
    changes = gpus(2) | gpus(1, role="Launcher", name="amd.com/gpu") | AS_WORKER
    (violation,) = violations("gpus", changes)
    assert violation.path == f"{LAUNCHER}[0].resources.limits[amd.com/gpu]"
    assert violation.message == "amd.com/gpu next to nvidia.com/gpu, but a job has one kind of accelerator"
    assert violation.fix.startswith("Use nvidia.com/gpu instead of amd.com/gpu, or make the part")
    assert violation.reason is CauseReason.NOT_SUPPORTED


def test_pod_without_containers_is_left_to_the_rule_upstream_contract() -> None:
    assert violations("gpus", {"Worker.template.spec.containers": []}, settings={"min": 1}) == []


def test_fraction_of_a_gpu_without_a_limit_is_reported_twice() -> None:
    half = {"Worker.template.spec.containers.0.resources": {"requests": {GPU: "500m"}}}
    assert [(found.path.rpartition("resources.")[2], found.fix) for found in violations("gpus", half)] == [
        (f"requests[{GPU}]", "Set it to 1."),
        (f"limits[{GPU}]", "Set it to 1."),
    ]


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        (gpus(32, 24), "Remove it: the limit applies."),
        (gpus(None, 32), "Set it to 16."),
        (gpus(32, 24, name=CORES), "Set it to 32, or remove it: the limit applies."),
    ],
)
def test_fix_for_unequal_limit_and_request_is_within_the_maximum(changes: Json, fix: str) -> None:
    assert violations("gpus", changes)[0].fix == fix


@pytest.mark.parametrize("limit", ["500m", -2])
def test_invalid_limit_is_not_suggested_as_the_request(limit: object) -> None:
    resources = {"requests": {GPU: 4}, "limits": {GPU: limit}}
    *_, of_request = violations("gpus", {"Worker.template.spec.containers.0.resources": resources})
    assert of_request.path.endswith(f"requests[{GPU}]")
    assert of_request.fix == "Remove it: the limit applies."


def test_accelerator_of_another_kind_on_the_launcher_is_reported() -> None:
    idle, other_kind = violations("gpus", gpus(2) | gpus(1, role="Launcher", name="amd.com/gpu"))
    assert other_kind.fix == "Remove amd.com/gpu: the launcher is not a worker."
    assert idle.fix == "Request none, or set runLauncherAsWorker: true."


@pytest.mark.parametrize("count", [1, 2])
def test_idle_gpus_of_the_launcher_are_a_warning(count: int) -> None:
    result = violations("gpus", gpus(count, role="Launcher"))
    stay = "1 GPU stays" if count == 1 else "2 GPUs stay"
    fix = "Request none, or set runLauncherAsWorker: true."
    assert result == [Violation("spec.mpiReplicaSpecs[Launcher]", f"its {stay} idle", fix=fix, advisory=True)]
    assert all(fits_a_warning("gpus", violation) for violation in result)


def test_accelerators_of_all_containers_are_added_up() -> None:
    limits = {"resources": {"limits": {GPU: 6}}}
    pod = {"containers": [limits, limits], "initContainers": [limits | {"restartPolicy": "Always"}, limits]}
    result = violations("gpus", {"Worker.template.spec": pod})
    assert [violation.message for violation in result] == ["a worker requests 18 GPUs, at most 16 allowed"]


def test_each_further_kind_of_accelerator_is_reported_once() -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1, "habana.ai/gaudi": 1, "amd.com/gpu": 0}
    container = {"resources": {"limits": limits, "requests": limits}}
    result = violations("gpus", {"Worker.template.spec": {"containers": [container, container]}})
    assert [violation.path for violation in result] == [
        f"{WORKER}[0].resources.limits[{name}]" for name in ("nvidia.com/mig-1g.5gb", "habana.ai/gaudi")
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resources": ["gpu"]}, '"gpu" is not a resource name such as nvidia.com/gpu'),
    ],
)
def test_invalid_settings_are_rejected(settings: Json, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate(settings)


def test_missing_limit_with_a_limit_range_is_left_to_the_rule_limit_range() -> None:
    alone = gpus(request=2)
    filling = Snapshot([limit_range("a", {"type": "Container", "default": {GPU: 2}})])
    launcher = {"Launcher.template.spec.containers.0.resources": {"limits": {GPU: "0"}}}
    assert violations("gpus", {**alone, **launcher}, view=filling) == []
    elsewhere = Snapshot([limit_range("a") | {"metadata": {"name": "a", "namespace": "team-b"}}])
    for view in (None, elsewhere):
        assert [each.path for each in violations("gpus", alone, view=view)] == [LIMIT]


def test_gpu_that_a_limit_range_adds_to_the_launcher_is_a_warning() -> None:
    view = Snapshot([limit_range("a", {"type": "Container", "max": {GPU: 2}, "default": {"cpu": 1}})])
    (advice,) = violations("gpus", {}, view=view)
    assert advice == Violation(
        "spec.mpiReplicaSpecs[Launcher]",
        f"a LimitRange adds an idle {GPU}",
        fix='Set its limit to "0".',
        advisory=True,
    )
    assert fits_a_warning("gpus", advice)
    assert violations("gpus", {"spec.runLauncherAsWorker": True}, view=view) == []
    assert violations("gpus", {}, view=Snapshot([limit_range("a", {"type": "Container", "default": {"cpu": 1}})])) == []


INIT = WORKER.replace(".containers", ".initContainers")
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NO_GPUS: Json = {"resources": {"limits": {"cpu": "1"}}}


def visible(value: str | None = "all", **container: Any) -> Json:
    """A container that sets NVIDIA_VISIBLE_DEVICES and requests no GPU. None stands for a value from a ConfigMap."""
    source = {"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}} if value is None else {"value": value}
    return {**NO_GPUS, **container, "env": [{"name": "A", "value": "all"}, {"name": VISIBLE, **source}]}


class TestVisibleDevices:
    """NVIDIA's container toolkit gives a container the GPUs in NVIDIA_VISIBLE_DEVICES even without a request."""

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"Worker.template.spec.containers": [visible()]}, f"{WORKER}[0]"),
            ({"Worker.template.spec.containers": [visible(None)]}, f"{WORKER}[0]"),
            ({"Worker.template.spec.containers": [{}, visible()]}, f"{WORKER}[1]"),
            ({"Worker.template.spec.initContainers": [visible()]}, f"{INIT}[0]"),
            ({"Launcher.template.spec.containers": [visible()], **AS_WORKER}, f"{LAUNCHER}[0]"),
        ],
    )
    def test_variable_is_a_warning_if_the_policy_does_not_reject_it(self, changes: Json, path: str) -> None:
        for settings, advisory in (({}, True), ({"max": 0}, False), ({"refuseVisibleDevices": True}, False)):
            changes = {"Worker.template.spec.containers.0.resources": NO_GPUS["resources"], **changes}
            (violation,) = violations("gpus", changes, settings=settings)
            assert (violation.path, violation.advisory) == (f"{path}.env[{VISIBLE}]", advisory)
            assert violation.message == "gives GPUs without a request"
            assert violation.fix == "Remove it, or request GPUs in resources.limits."
            assert "NVIDIA_VISIBLE_DEVICES]: gives GPUs without a request" in Finding("gpus", violation).warning

    @pytest.mark.parametrize(
        "changes",
        [
            *({"Worker.template.spec.containers": [visible(value, resources={})]} for value in ("none", "void", "")),
            {"Launcher.template.spec.containers": [visible()]},  # the operator sets an empty value
        ],
    )
    def test_value_that_gives_no_gpu_is_accepted(self, changes: Json) -> None:
        assert violations("gpus", changes, settings={"refuseVisibleDevices": True}) == []

    @pytest.mark.parametrize(("resource", "hidden"), [(GPU, True), ("amd.com/gpu", False)])
    def test_value_that_hides_requested_gpus_is_a_warning(self, resource: str, hidden: bool) -> None:
        container = visible("none", resources={"limits": {resource: 1}})
        faults = as_texts(violations("gpus", {"Worker.template.spec.containers": [container]}))
        assert faults == ([f"(advice) {WORKER}[0].env[{VISIBLE}]: hides the GPUs that are requested"] if hidden else [])

    @pytest.mark.parametrize(
        ("resources", "device"),
        [({"limits": {GPU: 1}}, "nic"), ({"claims": [{"name": "c0"}]}, "gpu.nvidia.com")],
        ids=["GPUs by a limit", "GPUs by a claim"],
    )
    def test_variable_of_a_container_with_gpus_is_rejected_if_the_policy_refuses_it(
        self, resources: Json, device: str
    ) -> None:
        changes = {**claims("t"), "Worker.template.spec.containers": [visible("all", resources=resources)]}
        view = Snapshot([claim_template("t", exactly(device)), device_class(device)])
        assert violations("gpus", changes, view=view) == []
        (violation,) = violations("gpus", changes, settings={"refuseVisibleDevices": True}, view=view)
        assert (violation.path, violation.advisory) == (f"{WORKER}[0].env[{VISIBLE}]", False)

    @pytest.mark.parametrize("template", ["adapters", "absent"])
    def test_claim_of_another_device_is_not_a_gpu_request(self, template: str) -> None:
        resources = {"claims": [{"name": "c0"}]}
        changes = {**claims(template), "Worker.template.spec.containers": [visible("all", resources=resources)]}
        view = Snapshot([claim_template("adapters", exactly("nic.example.com")), device_class("nic.example.com")])
        result = violations("gpus", changes, settings={"max": 0}, view=view)
        assert [each.advisory for each in result if VISIBLE in each.path] == [False]
        advice = [each.advisory for each in violations("gpus", changes, view=view) if VISIBLE in each.path]
        assert advice == ([True] if template == "adapters" else [])


class TestClaims:
    """Devices that pods request by ResourceClaimTemplates."""

    PATH = "spec.mpiReplicaSpecs[Worker].template.spec.resourceClaims"

    def check(self, request: Json, settings: Json | None = None) -> list[Violation]:
        view = Snapshot([claim_template("t", request)])
        return violations("gpus", claims("t"), settings=settings, view=view)

    def test_maximum_of_a_claim_is_compared_with_the_upper_limit(self) -> None:
        assert self.check(exactly(count=16)) == []
        fix = "Request 16 or fewer in all, by another ResourceClaimTemplate, and use more workers."
        assert self.check(exactly(count=17)) == [
            Violation(self.PATH, "a worker requests 17 GPUs, at most 16 allowed", fix=fix)
        ]
        fault = "a worker requests 1 GPU or more, at most 0 allowed"
        assert [each.message for each in self.check(exactly(allocationMode="All"), {"max": 0})] == [fault]

    def test_largest_choice_of_a_claim_is_compared_with_the_maximum(self) -> None:
        small = {"deviceClassName": "other.example.com"}
        choices = {"name": "r", "firstAvailable": [{"deviceClassName": "gpu.nvidia.com", "count": 17}, small]}
        other = device_class("other.example.com")
        view = Snapshot([claim_template("t", choices), other])
        fault = "a worker requests up to 17 GPUs, at most 16 allowed"
        assert [each.message for each in violations("gpus", claims("t"), view=view)] == [fault]
        assert violations("gpus", claims("t"), settings={"max": 17, "min": 1}, view=view) == []
        unreadable = violations("gpus", claims("t", "unreadable"), view=view)
        assert [each.message for each in unreadable] == ["a worker requests 17 GPUs or more, at most 16 allowed"]
        assert (
            violations("gpus", claims("t"), settings={"max": 17}, view=Snapshot([claim_template("t", choices)])) == []
        )

    def test_minimum_of_a_claim_is_compared_with_the_lower_limit(self) -> None:
        assert self.check(exactly(count=1), {"min": 1}) == []
        [short] = self.check(exactly(count=1), {"min": 2})
        assert (short.path, short.message) == (self.PATH, "a worker requests 1 GPU, at least 2 required")
        assert short.fix == "Request 2 or more in all, by another ResourceClaimTemplate."
        view = Snapshot([claim_template("t", exactly("nic")), device_class("nic")])
        assert [each.path for each in violations("gpus", claims("t"), settings={"min": 1}, view=view)] == [WORKER]

    UNKNOWN = 'the GPUs of claim "c0" are not counted: '
    NIC = claim_template("t", exactly("nic"))
    ABSENT = "Check the name: the pods wait until it exists."

    @pytest.mark.parametrize("settings", [{"min": 16}, {"max": 0}])
    @pytest.mark.parametrize(
        ("changes", "objects", "why", "fix"),
        [
            (claims("t"), [NONE], 'its template ("t") does not exist', ABSENT),
            (shared_claim("gpus"), [], 'pods share it (ResourceClaim "gpus")',
             "Use a ResourceClaimTemplate where each pod is to have GPUs of its own."),
            (claims("t"), [NIC, NONE], 'its DeviceClass ("nic") does not exist', ABSENT),
        ],
    )  # fmt: skip
    def test_claim_that_cannot_be_counted_is_a_warning(
        self, changes: Json, objects: list[Json], why: str, fix: str, settings: Json
    ) -> None:
        (violation,) = violations("gpus", changes, settings=settings, view=Snapshot(objects))
        assert violation == Violation(f"{self.PATH}[0]", self.UNKNOWN + why, fix=fix, advisory=True)

    @pytest.mark.parametrize("objects", [[], [NIC]])
    def test_claims_that_cannot_be_read_are_reported_only_if_the_policy_rejects_uncounted_ones(
        self, objects: list[Json]
    ) -> None:
        assert violations("gpus", claims("t"), view=Snapshot(objects)) == []
        (warning,) = violations("gpus", claims("t"), settings={"refuseUncountedClaims": True}, view=Snapshot(objects))
        assert (warning.advisory, warning.fix) == (True, "Keep within the limits: its devices are not counted here.")

    OTHER = claim_template("other", exactly("other.example.com"))
    CLASSES = (device_class("other.example.com"), device_class("nic"))

    @pytest.mark.parametrize(
        ("changes", "objects", "rejected"),
        [
            (claims("t"), [NONE], True),
            (claims("t", role="Launcher"), [NONE], True),
            (shared_claim("gpus"), [NONE], True),
            (claims("t"), [NONE, claim_template("t", exactly(allocationMode="All"))], True),
            (claims("other"), [OTHER, *CLASSES], True),
            (claims("t"), [NIC, *CLASSES], False),
            (claims("t"), [claim_template("t", exactly(count=2)), *CLASSES], False),
        ],
    )
    def test_policy_can_reject_uncounted_claims(self, changes: Json, objects: list[Json], rejected: bool) -> None:
        result = violations(
            "gpus", changes, settings={"refuseUncountedClaims": True, "otherClasses": ["nic"]}, view=Snapshot(objects)
        )
        assert [each.advisory for each in result] == [False] * rejected
        assert not any(" not counted: " not in each.message for each in result)

    def test_claim_of_all_devices_of_a_node_is_a_warning(self) -> None:
        (violation,) = self.check(exactly(allocationMode="All"))
        assert (violation.message, violation.advisory) == (
            self.UNKNOWN + 'its template ("t") requests all devices of a node',
            True,
        )
        assert violation.fix == "Use one with allocationMode: ExactCount and a count."
        assert len(self.check(exactly(allocationMode="All"), {"max": 0})) == 1

    def test_claims_with_the_same_reason_are_one_warning(self) -> None:
        view = Snapshot([claim_template("u", exactly()), NONE])
        (violation,) = violations("gpus", claims("t", "u", "t", "t", "t", "t"), view=view)
        assert violation.path == self.PATH
        assert violation.message.startswith('the GPUs of claim "c0" and 4 more are not counted: ')
        assert violation.message.replace(' ("t")', "") in Finding("gpus", violation).warning

    def test_unknown_claim_of_a_launcher_that_is_a_worker_is_a_warning(self) -> None:
        changes = claims("t", role="Launcher")
        view = Snapshot([NONE])
        assert violations("gpus", changes, view=view) == []
        (violation,) = violations("gpus", {**changes, **AS_WORKER}, view=view)
        assert violation.path == self.PATH.replace("Worker", "Launcher") + "[0]"


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        (gpus(129, name=CORES), {}, "a worker requests 129 cores, at most 128 allowed"),
        (gpus(12, name=CORES), {"maxCores": 8}, "a worker requests 12 cores, at most 8 allowed"),
        (gpus(200, name=CORES, role="Launcher"), {}, "the launcher requests 200 cores, at most 128 allowed"),
        (gpus(1, name=CORES), {"max": 0}, "a worker requests 1 GPU, at most 0 allowed"),
        (gpus(32, name=CORES), {"coreResources": []}, "a worker requests 32 GPUs, at most 16 allowed"),
        (gpus(32, name="aws.amazon.com/neuron"), {}, "a worker requests 32 GPUs, at most 16 allowed"),
    ],
)
def test_number_of_cores_is_compared_with_the_setting_max_cores(changes: Json, settings: Json, message: str) -> None:
    assert message in [each.message for each in violations("gpus", changes, settings=settings)]
