"""Changes to worker pods, with the violation of the rule `pod-template`, if any, and the API server's verdict.

Unit tests and tests with the real API server share this table.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.support.pod_template import BOX, SPEC


class Case(NamedTuple):
    """Changes to the worker of the valid job `GOOD`."""

    changes: Mapping[str, Any]
    told: str = ""
    """The violation, as `pod_template.told` shows it. Empty if there is no violation."""
    taken: bool = True
    """Whether the API server accepts the pod."""


SYSCTLS: Final = f"{SPEC}.securityContext.sysctls"
MOUNTED: Final = {f"{BOX}.volumeMounts": [{"name": "pages", "mountPath": "/pages"}]}
FILE: Final = {"key": "A", "path": "env", "volumeName": "files"}


def sysctl(name: str) -> list[dict[str, str]]:
    return [{"name": name, "value": "1"}]


def pages(medium: str, *sizes: str) -> dict[str, Any]:
    limits = {f"hugepages-{size}": "1Gi" for size in sizes}
    return {
        f"{SPEC}.volumes": [{"name": "pages", "emptyDir": {"medium": medium}}],
        f"{BOX}.resources": {"limits": {"memory": "1Gi", "cpu": 1, **limits}},
    }


OF_SYSCTL: Final = "spec.securityContext.sysctls[0].name"
NO_PAGES: Final = 'spec.volumes[0].emptyDir.medium: no container requests pages for "pages" (the pods never start).'
IS_ROOT: Final = (
    "securityContext.runAsUser: is 0, but runAsNonRoot is true, so the container never starts. "
    "Set it to 1000, or runAsNonRoot to false."
)

CASES: Final[Mapping[str, Case]] = {
    # Linux namespaces of the node.
    "net sysctl": Case({SYSCTLS: sysctl("net.core.somaxconn")}),
    "net sysctl in the host network": Case(
        {SYSCTLS: sysctl("net.core.somaxconn"), f"{SPEC}.hostNetwork": True},
        f"{OF_SYSCTL}: net.core.somaxconn does not go with hostNetwork. Remove it, or hostNetwork.",
        taken=False,
    ),
    "net sysctl with slashes": Case(
        {SYSCTLS: sysctl("net/ipv4/conf/eth0.1/rp_filter"), f"{SPEC}.hostNetwork": True},
        f"{OF_SYSCTL}: net/ipv4/conf/eth0.1/rp_filter does not go with hostNetwork. Remove it, or hostNetwork.",
        taken=False,
    ),
    "kernel sysctl in the host network": Case({SYSCTLS: sysctl("kernel.shmmax"), f"{SPEC}.hostNetwork": True}),
    "kernel.shm with hostIPC": Case(
        {SYSCTLS: sysctl("kernel.shmmax"), f"{SPEC}.hostIPC": True},
        f"{OF_SYSCTL}: kernel.shmmax does not go with hostIPC. Remove it, or hostIPC.",
        taken=False,
    ),
    "mqueue with hostIPC": Case(
        {SYSCTLS: sysctl("fs.mqueue.msg_max"), f"{SPEC}.hostIPC": True},
        f"{OF_SYSCTL}: fs.mqueue.msg_max does not go with hostIPC. Remove it, or hostIPC.",
        taken=False,
    ),
    "net sysctl with hostIPC": Case({SYSCTLS: sysctl("net.core.somaxconn"), f"{SPEC}.hostIPC": True}),
    "hostUsers: false": Case({f"{SPEC}.hostUsers": False}),
    "hostUsers: true in the host network": Case({f"{SPEC}.hostUsers": True, f"{SPEC}.hostNetwork": True}),
    "hostUsers: false in the host network": Case(
        {f"{SPEC}.hostUsers": False, f"{SPEC}.hostNetwork": True},
        "spec.hostNetwork: does not go with hostUsers: false. Remove one of the two.",
        taken=False,
    ),
    # Resources of the pod.
    "resources of the pod": Case({f"{SPEC}.resources": {"limits": {"cpu": 16, "memory": "64Gi"}}}),
    "extended resource of the pod": Case(
        {f"{SPEC}.resources": {"limits": {"cpu": 16, "nvidia.com/gpu": 2}}},
        "spec.resources.limits[nvidia.com/gpu]: cannot be set for the pod as a whole. "
        "Move it to spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.limits[nvidia.com/gpu].",
        taken=False,
    ),
    "limit above the pod's": Case(
        {f"{SPEC}.resources": {"limits": {"memory": "32Gi"}}, f"{BOX}.resources.requests": {"memory": "1Gi"}},
        "spec.containers[0].resources.limits[memory]: 64Gi is above the pod's limit of 32Gi. Set it to 32Gi or less.",
        taken=False,
    ),
    "requests of the pod": Case({f"{SPEC}.resources": {"requests": {"memory": "64Gi"}, "limits": {"memory": "64Gi"}}}),
    "requests below the containers'": Case(
        {f"{SPEC}.resources": {"requests": {"memory": "32Gi"}}},
        "spec.resources.requests[memory]: 32Gi is below the containers' 64Gi. Set it to 64Gi or more.",
        taken=False,
    ),
    "requests below those that the containers' limits imply": Case(
        {f"{SPEC}.resources": {"requests": {"memory": "32Gi"}}, f"{BOX}.resources": {"limits": {"memory": "64Gi"}}},
        "spec.resources.requests[memory]: 32Gi is below the containers' 64Gi. Set it to 64Gi or more.",
        taken=False,
    ),
    "requests above the pod's limits": Case(
        {f"{SPEC}.resources": {"requests": {"memory": "65Gi"}, "limits": {"memory": "64Gi"}}},
        "spec.resources.requests[memory]: 65Gi is above the limit of 64Gi. Set it to 64Gi or less.",
        taken=False,
    ),
    "overhead": Case(
        {f"{SPEC}.overhead": {"cpu": "100m"}},
        "spec.overhead: needs a RuntimeClass with the same overhead. Remove it: a RuntimeClass sets it.",
        taken=False,
    ),
    # Variables from files.
    "env file in an emptyDir": Case(
        {
            f"{SPEC}.volumes": [{"name": "files", "emptyDir": {}}],
            f"{BOX}.env": [{"name": "A", "valueFrom": {"fileKeyRef": FILE}}],
        }
    ),
    "env file in a missing volume": Case(
        {f"{BOX}.env": [{"name": "A", "valueFrom": {"fileKeyRef": FILE}}]},
        'spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: there is no volume "files". '
        "Add an emptyDir under volumes, or correct the name.",
        taken=False,
    ),
    "env file in a volume without a source": Case(
        {
            f"{SPEC}.volumes": [{"name": "files"}],
            f"{BOX}.env": [{"name": "A", "valueFrom": {"fileKeyRef": FILE}}],
        }
    ),
    "env file in a ConfigMap volume": Case(
        {
            f"{SPEC}.volumes": [{"name": "files", "configMap": {"name": "c"}}],
            f"{BOX}.env": [{"name": "A", "valueFrom": {"fileKeyRef": FILE}}],
        },
        'spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: volume "files" is not an emptyDir.'
        " Name an emptyDir.",
        taken=False,
    ),
    # The API server accepts these pods, but the kubelet does not start them.
    "runAsNonRoot with user 1000": Case({f"{SPEC}.securityContext": {"runAsNonRoot": True, "runAsUser": 1000}}),
    "runAsNonRoot with the image's user": Case({f"{SPEC}.securityContext": {"runAsNonRoot": True}}),
    "user 0 without runAsNonRoot": Case({f"{SPEC}.securityContext": {"runAsUser": 0}}),
    "user 0 with runAsNonRoot": Case(
        {f"{SPEC}.securityContext": {"runAsNonRoot": True, "runAsUser": 0}}, f"spec.{IS_ROOT}"
    ),
    "container overrides user 0": Case(
        {
            f"{SPEC}.securityContext": {"runAsNonRoot": True, "runAsUser": 0},
            f"{BOX}.securityContext": {"runAsUser": 1000},
        }
    ),
    "container sets user 0": Case(
        {f"{SPEC}.securityContext": {"runAsNonRoot": True}, f"{BOX}.securityContext": {"runAsUser": 0}},
        f"spec.containers[0].{IS_ROOT}",
    ),
    "container allows user 0": Case(
        {
            f"{SPEC}.securityContext": {"runAsNonRoot": True},
            f"{BOX}.securityContext": {"runAsUser": 0, "runAsNonRoot": False},
        }
    ),
    "init container sets user 0": Case(
        {
            f"{SPEC}.initContainers": [
                {"name": "i", "image": "i:1", "securityContext": {"runAsNonRoot": True, "runAsUser": 0}}
            ]
        },
        f"spec.initContainers[0].{IS_ROOT}",
    ),
    "huge pages": Case({**pages("HugePages-2Mi", "2Mi"), **MOUNTED}),
    "huge pages without a size in the medium": Case({**pages("HugePages", "1Gi"), **MOUNTED}),
    "huge pages that nothing mounts": Case(pages("HugePages-2Mi")),
    "huge pages without a request": Case(
        {**pages("HugePages-2Mi"), **MOUNTED}, f"{NO_PAGES} Set the limit hugepages-2Mi of a container."
    ),
    "request for huge pages of a different size": Case(
        {**pages("HugePages-1Gi", "2Mi"), **MOUNTED}, f"{NO_PAGES} Set the limit hugepages-1Gi of a container."
    ),
    "requests for huge pages of two sizes": Case(
        {**pages("HugePages", "2Mi", "1Gi"), **MOUNTED},
        'spec.volumes[0].emptyDir.medium: there are several sizes of pages for "pages" (the pods never start). '
        "Name the size, as HugePages-2Mi.",
    ),
    # `pod-template` does not report the next two cases. Other rules report them: no runtime can mount the file, and no
    # kubelet sets such a long host name.
    "mount in the folder of the SSH keys": Case(
        {
            f"{SPEC}.volumes": [{"name": "ssh", "configMap": {"name": "c"}}],
            f"{BOX}.volumeMounts": [{"name": "ssh", "mountPath": "/root/.ssh/config", "subPath": "config"}],
        }
    ),
    "full host name that is too long": Case({f"{SPEC}.setHostnameAsFQDN": True, "metadata.name": "x" * 50}),
    "volume in memory": Case({f"{SPEC}.volumes": [{"name": "pages", "emptyDir": {"medium": "Memory"}}], **MOUNTED}),
    "probe of a port by name": Case(
        {
            f"{BOX}.ports": [{"name": "ssh", "containerPort": 22}],
            f"{BOX}.readinessProbe": {"tcpSocket": {"port": "ssh"}},
        }
    ),
    "probe of a missing port": Case(
        {
            f"{BOX}.ports": [{"name": "sshd", "containerPort": 22}],
            f"{BOX}.readinessProbe": {"tcpSocket": {"port": "ssh"}},
        },
        '(advice) spec.containers[0].readinessProbe.tcpSocket.port: readinessProbe of worker: no port "ssh". '
        "Write a number.",
    ),
    "handler with a missing port": Case(
        {f"{BOX}.lifecycle": {"postStart": {"httpGet": {"port": "web"}}}},
        '(advice) spec.containers[0].lifecycle.postStart.httpGet.port: postStart of worker: no port "web". '
        "Write a number.",
    ),
}
