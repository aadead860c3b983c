"""Random pods as JSON values, which barely pass or barely fail checks of Pod Security.

`pod(rng)` starts with a pod that `restricted` allows, and changes a few fields. The API server's validation accepts
nearly all of these pods, so that Pod Security sees them.
"""

from copy import deepcopy
from random import Random
from typing import Any

from tests.support.pod_security.edges import (
    APPARMOR,
    EDGES,
    SECCOMP,
    SECCOMP_CONTAINER,
    WINDOWS_EDGES,
    Pod,
    all_containers,
)

COMPLIANT = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(rng: Random) -> Pod:
    """A pod, called "p"."""
    made = windows_pod(rng) if rng.random() < 0.1 else compliant_pod(rng)
    edges = WINDOWS_EDGES if "os" in made["spec"] else EDGES
    for edge in rng.sample(edges, k=min(rng.choice((0, 1, 1, 1, 2, 2, 3, 5)), len(edges))):
        edge(made, rng)
    return made_valid(made, rng)


def compliant_pod(rng: Random) -> Pod:
    """A pod that `restricted` allows. The required fields are in the pod, in the containers, or in both."""
    spec: Pod = {"containers": [_container(f"c{index}") for index in range(rng.choice((1, 1, 2, 3)))]}
    if rng.random() < 0.4:
        spec["initContainers"] = [_container("init")]
    if rng.random() < 0.2:
        spec["initContainers"] = [*spec.get("initContainers", []), _container("side", restartPolicy="Always")]
    for container in all_containers(spec):
        container["securityContext"] = deepcopy(COMPLIANT)
    for key in ("runAsNonRoot", "seccompProfile"):
        if rng.random() < 0.6:
            spec.setdefault("securityContext", {})[key] = deepcopy(COMPLIANT[key])
            for container in all_containers(spec):
                if rng.random() < 0.7:
                    del container["securityContext"][key]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {}}, "spec": spec}


def windows_pod(rng: Random) -> Pod:
    """A Windows pod: the API server accepts hardly any Linux field in it."""
    spec: Pod = {"os": {"name": "windows"}, "containers": [_container(f"c{i}") for i in range(rng.choice((1, 2)))]}
    for container in spec["containers"]:
        container["securityContext"] = rng.choice(({}, {"runAsNonRoot": True}, {"runAsNonRoot": False}))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {}}, "spec": spec}


def made_valid(made: Pod, rng: Random) -> Pod:
    """The pod without fields that the API server's validation would reject."""
    spec = made["spec"]
    for container in all_containers(spec):
        if rng.random() < 0.02:
            container["securityContext"] = {}
        if container["securityContext"].get("privileged"):
            container["securityContext"]["allowPrivilegeEscalation"] = True
        if container["securityContext"].get("procMount") == "Unmasked":
            spec["hostUsers"] = False
    _agree_with_annotations(made)
    if spec.get("hostUsers") is False:
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            spec.pop(key, None)
        _drop("windowsOptions", spec)
    if spec.get("hostNetwork"):
        spec.get("securityContext", {}).pop("sysctls", None)
        for port in (port for container in all_containers(spec) for port in container.get("ports", [])):
            port.pop("hostPort", None)
    for container in all_containers(spec):
        if not container["securityContext"]:
            del container["securityContext"]
    return made


def _agree_with_annotations(made: Pod) -> None:
    """Remove fields that may contradict legacy annotations."""
    annotations = made["metadata"]["annotations"]
    if any(key.startswith((SECCOMP, SECCOMP_CONTAINER)) for key in annotations):
        _drop("seccompProfile", made["spec"])
    for container in all_containers(made["spec"]):
        if APPARMOR + container["name"] in annotations:
            container["securityContext"].pop("appArmorProfile", None)


def _drop(key: str, spec: Pod) -> None:
    """Remove the field from the security contexts of the pod and all containers."""
    for owner in (spec, *all_containers(spec)):
        owner.get("securityContext", {}).pop(key, None)


def _container(name: str, **more: Any) -> Pod:
    return {"name": name, "image": "x", **more}
