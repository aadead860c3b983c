"""The fields that the Pod Security checks report.

tests/conformance/test_pod_security.py compares the messages of all checks and versions with the real API server.
"""

import copy
import re
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pod_security.pods import pod
from webhook.predict.pod_security import NEWEST, Level, Result, Version, evaluate
from webhook.predict.pod_security.checks import REGISTRY
from webhook.predict.pod_security.pod import convert
from webhook.predict.pod_security.subject import Subject

Json = dict[str, Any]
SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
CONTEXT: Final = "spec.containers[0].securityContext"


def container(**context: Any) -> Json:
    return {"spec": {"containers": [{"name": "a", "securityContext": context}]}}


def run(check: str, version: Version, template: Json) -> Result | None:
    exists = REGISTRY[check].revision(version) is not None
    return REGISTRY[check].evaluate(Subject(convert(template), version)) if exists else None


def test_seccomp_annotations_are_checked_up_to_v1_18() -> None:
    template = {"metadata": {"annotations": {SECCOMP: "unconfined"}}}
    result = run("seccompProfile_baseline", Version(18), template)
    assert result is not None
    assert (result.detail, result.paths) == (
        f'forbidden annotation {SECCOMP}="unconfined"', (f"metadata.annotations[{SECCOMP}]",),
    )  # fmt: skip
    assert run("seccompProfile_baseline", Version(19), template) is None


@pytest.mark.parametrize(
    ("check", "minor", "users", "allowed"),
    [
        ("procMount", 34, False, False),
        ("procMount", 35, True, False),
        ("procMount", 35, None, False),
        ("procMount", 35, False, True),
        ("procMount_restricted", 35, False, False),
    ],
)
def test_proc_mount_is_allowed_by_baseline_in_a_user_namespace_from_v1_35(
    check: str, minor: int, users: bool | None, allowed: bool
) -> None:
    """The API server's validation rejects some of these pods, so the conformance tests cannot contain them."""
    template = container(procMount="Unmasked")
    template["spec"]["hostUsers"] = users
    result = run(check, Version(minor), template)
    assert (result is None) is allowed
    assert result is None or result.paths == (f"{CONTEXT}.procMount",)


GOOD: Final[Json] = {
    "drop": ["ALL"],
    "runAsNonRoot": True,
    "runAsUser": 1,
    "allowPrivilegeEscalation": False,
    "type": "RuntimeDefault",
}
"""Valid values by field. The function `corrected` removes a reported field that is not listed here."""


@given(seed=st.integers(0, 2**32), minor=st.integers(0, NEWEST.minor), level=st.sampled_from([*Level]))
def test_reported_fields_are_exactly_the_fields_at_fault(seed: int, minor: int, level: Level) -> None:
    made = pod(Random(seed))
    for result in evaluate(level, Version(minor), convert(made)):
        if result.check == "hostPorts" and made["spec"].get("hostNetwork"):
            continue  # with hostNetwork, the fault is the container's port
        assert named(result, corrected(made, result.paths), minor).isdisjoint(result.paths)
        for path in result.paths:
            others = [each for each in result.paths if each != path]
            assert path in named(result, corrected(made, others), minor)


def named(result: Result, made: Json, minor: int) -> set[str]:
    again = run(result.check, Version(minor), made)
    return set() if again is None else set(again.paths)


def corrected(made: Json, paths: Any) -> Json:
    made = copy.deepcopy(made)
    for path in paths:
        *parents, last = [key or name for name, key in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", path)]
        if parents[0] == "metadata":
            del made["metadata"]["annotations"][last]
            continue
        value: Any = made
        for part in parents:
            value = value[int(part)] if isinstance(value, list) else value.setdefault(part, {})
        if last == "name":
            value["name"] = "kernel.shm_rmid_forced"
        elif last in GOOD and "seLinuxOptions" not in parents:
            value[last] = GOOD[last]
        else:
            value.pop(last, None)
    return made
