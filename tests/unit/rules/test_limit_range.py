"""Messages of the rule `limit-range`. tests/conformance/test_limit_ranger.py compares the rule with the API server."""

from typing import Any

import pytest

from tests.support.any_job import Json
from tests.support.jobs import REMOVE
from tests.support.limit_ranges import limit_range
from tests.support.rule_checks import violations
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason

SPEC = "spec.mpiReplicaSpecs[Worker].template.spec"
FIRST = f"{SPEC}.containers[0].resources"
INIT = f"{SPEC}.initContainers[0].resources"
CONTAINERS = "Worker.template.spec.containers"
RESOURCES = f"{CONTAINERS}.0.resources"
IN_A = "; the pods are rejected (LimitRange a)"


def worker_violations(changes: Json, *limits: Json) -> list[tuple[str, str, str]]:
    """(path, message, fix) of each violation of the worker."""
    result = violations("limit-range", changes, view=Snapshot([limit_range("a", *limits)]))
    return [(each.path, each.message, each.fix) for each in result if each.path.startswith("spec.mpiReplicaSpecs[W")]


def with_resources(requests: Json | None = None, limits: Json | None = None) -> Json:
    return {RESOURCES: {"requests": requests or {}, "limits": limits or {}}}


def of_container(**limit: Any) -> Json:
    return {"type": "Container", **limit}


def of_pod(**limit: Any) -> Json:
    return {"type": "Pod", **limit}


@pytest.mark.parametrize(
    ("changes", "limit", "path", "message", "fix"),
    [
        (
            with_resources(limits={"cpu": 4}),
            of_container(max={"cpu": 2}),
            f"{FIRST}.limits[cpu]",
            f"limit 4, at most 2 for a container{IN_A}",
            "Set limits[cpu] to 2.",
        ),
        (
            with_resources({"cpu": 3}, {"cpu": 4}),
            of_container(max={"cpu": 2}),
            f"{FIRST}.limits[cpu]",
            f"limit 4, at most 2 for a container{IN_A}",
            "Set limits[cpu] to 2 and requests[cpu] to 2.",
        ),
        (
            with_resources({"cpu": "100m"}, {"cpu": 4}),
            of_container(min={"cpu": "250m"}),
            f"{FIRST}.requests[cpu]",
            f"request 100m, at least 250m for a container{IN_A}",
            "Set requests[cpu] to 250m.",
        ),
        (
            with_resources(limits={"cpu": "100m"}),
            of_container(min={"cpu": "250m"}),
            f"{FIRST}.limits[cpu]",
            f"request 100m, at least 250m for a container{IN_A}",
            "Set limits[cpu] to 250m.",
        ),
        (
            with_resources({"cpu": 1}, {"cpu": 4}),
            of_container(maxLimitRequestRatio={"cpu": 2}),
            f"{FIRST}.requests[cpu]",
            f"limit 4 and request 1, limits are at most 2 times requests{IN_A}",
            "Set requests[cpu] to 2.",
        ),
        (
            with_resources({"cpu": 1}),
            of_container(maxLimitRequestRatio={"cpu": 2}),
            f"{FIRST}.requests[cpu]",
            f"no cpu limit and request 1, limits are at most 2 times requests{IN_A}",
            "Set limits[cpu] to 1.",
        ),
        (
            with_resources(),
            of_container(maxLimitRequestRatio={"cpu": 2}),
            f"{FIRST}.limits[cpu]",
            f"neither cpu limit nor request, limits are at most 2 times requests{IN_A}",
            "Set limits[cpu] to the needed amount.",
        ),
        # A pod with one container: the message is about the container.
        (
            with_resources(limits={"cpu": 4}),
            of_pod(max={"cpu": 2}),
            f"{FIRST}.limits[cpu]",
            f"limit 4, at most 2 for a pod{IN_A}",
            "Set limits[cpu] to 2.",
        ),
        (
            with_resources(),
            of_pod(max={"cpu": 2}),
            f"{FIRST}.limits[cpu]",
            f"no cpu limit, at most 2 for a pod{IN_A}",
            "Set limits[cpu] to 2 or less.",
        ),
        (
            with_resources(),
            of_pod(min={"cpu": 2}),
            f"{FIRST}.limits[cpu]",
            f"no cpu request, at least 2 for a pod{IN_A}",
            "Set limits[cpu] to 2.",
        ),
        # A pod with two containers, which exceed the limit together.
        (
            {f"{CONTAINERS}": [{"name": name, "resources": {"limits": {"cpu": 20}}} for name in ("a", "b")]},
            of_pod(max={"cpu": 32}),
            f"{SPEC}.containers",
            f"cpu limits of 40 in all, at most 32 for a pod{IN_A}",
            "Set limits[cpu] to 32 and requests[cpu] to 32 in all.",
        ),
        # Resources of the pod itself.
        (
            {"Worker.template.spec.resources": {"limits": {"cpu": 40}}},
            of_pod(max={"cpu": 32}),
            f"{SPEC}.resources.limits[cpu]",
            f"limit 40, at most 32 for a pod{IN_A}",
            "Set limits[cpu] to 32.",
        ),
        # Pods that are invalid with the defaults of the LimitRange.
        (
            with_resources({"cpu": 4}),
            of_container(default={"cpu": 1}, max={"cpu": 8}),
            f"{FIRST}.limits[cpu]",
            "default limit 1 for the request 4; the pods are rejected",
            "Set limits[cpu] to 4.",
        ),
        (
            with_resources({"x/y": 2}),
            of_container(default={"x/y": 4}),
            f"{FIRST}.limits[x/y]",
            "default limit 4 for the request 2; the pods are rejected",
            "Set limits[x/y] to 2.",
        ),
        (
            with_resources(),
            of_container(min={"nvidia.com/gpu": 1}),
            f"{FIRST}.limits[nvidia.com/gpu]",
            "no limit for the request 1; the pods are rejected",
            "Set limits[nvidia.com/gpu] to 1.",
        ),
        (
            with_resources({"x/y": 2}),
            of_container(default={"cpu": 4}),
            f"{FIRST}.limits[x/y]",
            "no limit for the request 2; the pods are rejected",
            "Set limits[x/y] to 2.",
        ),
        (
            with_resources({"x/y": 2}),
            of_pod(max={"x/y": 1}),
            f"{FIRST}.limits[x/y]",
            "no limit for the request 2; the pods are rejected",
            "Set limits[x/y] to 1 and requests[x/y] to 1.",
        ),
        (
            with_resources(),
            of_container(default={"hugepages-2Mi": "2Mi"}),
            FIRST,
            "default hugepages-2Mi 2Mi without cpu or memory; the pods are rejected",
            "Set limits[memory] to the needed amount.",
        ),
        (
            {**with_resources(), "Worker.template.spec.resources": {"requests": {"cpu": 1}}},
            of_container(defaultRequest={"cpu": 2}),
            f"{SPEC}.resources.requests[cpu]",
            "1, the containers get defaults and request 2; the pods are rejected",
            "Set it to 2 or more.",
        ),
        (
            {**with_resources({"cpu": 1}), "Worker.template.spec.resources": {"limits": {"cpu": 1}}},
            of_container(default={"cpu": 2}),
            f"{FIRST}.limits[cpu]",
            "2, the pod has 1; the pods are rejected",
            "Set it to 1 or less.",
        ),
    ],
)
def test_worker_that_breaks_a_limit_range_is_reported(
    changes: Json, limit: Json, path: str, message: str, fix: str
) -> None:
    assert worker_violations(changes, limit) == [(path, message, fix)]


def test_every_container_and_resource_is_reported() -> None:
    changes = {
        CONTAINERS: [{"name": "a", "resources": {"limits": {"cpu": 4, "memory": "1Gi"}}}],
        "Worker.template.spec.initContainers": [
            {"name": "i", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": 3}}}
        ],
    }
    limit = of_container(max={"cpu": 2, "memory": "512Mi"}, min={"cpu": 1}, maxLimitRequestRatio={"cpu": 2})
    assert [(path, message.removesuffix(IN_A)) for path, message, _ in worker_violations(changes, limit)] == [
        (f"{FIRST}.limits[cpu]", "limit 4, at most 2 for a container"),
        (f"{FIRST}.limits[memory]", "limit 1Gi, at most 512Mi for a container"),
        (
            f"{INIT}.requests[cpu]",
            "request 100m, at least 1 for a container; limit 3, at most 2 for a container;"
            " limit 3 and request 100m, limits are at most 2 times requests",
        ),
    ]


def test_resource_that_breaks_several_limits_is_one_violation() -> None:
    """The fix satisfies all LimitRanges, for containers and for pods."""
    ranges = [of_container(max={"cpu": 8}, maxLimitRequestRatio={"cpu": 2}), of_pod(max={"cpu": 4})]
    changes = with_resources(limits={"cpu": 16}, requests={"cpu": 1})
    view = Snapshot([limit_range(name, each) for name, each in zip("ab", ranges, strict=True)])
    [violation] = violations("limit-range", changes, view=view)
    assert violation.message == (
        "limit 16, at most 8 for a container, at most 4 for a pod;"
        " limit 16 and request 1, limits are at most 2 times requests; the pods are rejected (LimitRange a, b)"
    )
    assert violation.fix == "Set limits[cpu] to 4 and requests[cpu] to 2."
    fixed = with_resources(limits={"cpu": 4}, requests={"cpu": 2})
    assert violations("limit-range", fixed, view=view) == []


def claims(storage: str | None) -> Json:
    requests = {} if storage is None else {"requests": {"storage": storage}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": requests}}}}
    return {"Worker.template.spec.volumes": [{"name": "other", "emptyDir": {}}, volume]}


@pytest.mark.parametrize(
    ("storage", "fault", "fix"),
    [
        ("1Gi", "1Gi, at least 2Gi for a claim", "Set requests[storage] to 2Gi."),
        ("9Gi", "9Gi, at most 8Gi for a claim", "Set requests[storage] to 8Gi."),
    ],
)
def test_claim_out_of_range_is_reported(storage: str, fault: str, fix: str) -> None:
    limit = {"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "8Gi"}}
    path = f"{SPEC}.volumes[1].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]"
    expected = (path, f"request {fault}; its pods wait for ever (LimitRange a)", fix)
    assert worker_violations(claims(storage), limit) == [expected]
    assert worker_violations(claims("4Gi"), limit) == []


def test_missing_limit_has_the_cause_reason_required() -> None:
    view = Snapshot([limit_range("a", of_pod(max={"x/y": 2}))])
    launcher, worker = violations("limit-range", view=view)
    assert (launcher.reason, worker.reason) == (CauseReason.REQUIRED, CauseReason.REQUIRED)


def test_message_has_the_strictest_limit_and_names_the_limit_ranges() -> None:
    several = [
        limit_range(name, of_container(max={"cpu": cpu})) for name, cpu in zip("abcd", (3, 2, 4, 5), strict=True)
    ]
    agreed = [{**each, "spec": {"limits": [{**each["spec"]["limits"][0], "default": {"cpu": 1}}]}} for each in several]
    (result,) = violations("limit-range", with_resources(limits={"cpu": 4}), view=Snapshot(agreed))
    assert result.message == "limit 4, at most 2 for a container; the pods are rejected (LimitRange a, b, c, ...)"


def test_pod_without_containers_is_left_to_the_rule_upstream_contract() -> None:
    assert worker_violations({CONTAINERS: []}, of_pod(max={"cpu": "1"})) == []


def test_fix_for_contradicting_limits_is_to_ask_an_administrator() -> None:
    ranges = [limit_range("a", of_pod(max={"cpu": 2})), limit_range("b", of_pod(min={"cpu": 3}))]
    *_, result = violations("limit-range", with_resources(limits={"cpu": 4}), view=Snapshot(ranges))
    assert result.fix == "No amount fits: ask an administrator to change the LimitRanges."


def test_resource_with_two_different_defaults_causes_no_violation() -> None:
    ranges = [limit_range(name, of_container(default={"cpu": cpu})) for name, cpu in (("a", 3), ("b", 8))]
    ranges.append(limit_range("c", of_pod(max={"cpu": 2, "memory": "1Mi"})))
    result = violations(
        "limit-range",
        {"Worker": REMOVE, "Launcher.template.spec.containers.0.resources": REMOVE},
        view=Snapshot(ranges),
    )
    assert [each.path.rpartition(".")[2] for each in result] == ["limits[memory]"]


def test_unknown_limit_ranges_cause_no_violation() -> None:
    assert violations("limit-range", with_resources(limits={"cpu": 4})) == []
    elsewhere = {**limit_range("a", of_container(max={"cpu": 2})), "metadata": {"name": "a", "namespace": "b"}}
    assert violations("limit-range", with_resources(limits={"cpu": 4}), view=Snapshot([elsewhere])) == []
