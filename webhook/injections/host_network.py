"""Workers in the host network run on separate nodes, because the port of their sshd is declared.

Two workers with `hostNetwork: true` on one node share its ports: the second sshd cannot start, and the job fails
(mpi-operator issue 593). In the host network every declared port is a host port. The scheduler never puts two pods with
the same host port on one node, even if they belong to different jobs. Therefore the first container of these workers
gets the port of sshd in its `ports`. A worker with a declared port in any container stays unchanged: the declared port
keeps pods apart already, and the API server rejects a port that is declared twice. If there are more workers than
nodes, some workers wait.

The injection is off unless a policy sets `enabled`. Enable it in clusters that allow the host network. The port is read
from sshd's options, or from the launcher's options of ssh. If neither has a port, the setting `port` is used. If sshd
has its own configuration file, a warning asks the user to declare the port.
"""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import Field

from webhook.api import sshd
from webhook.api.mpijob import WORKER, MPIJob
from webhook.api.pod_resources import is_sidecar
from webhook.api.untyped import mapping
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, in_worker
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings


class Settings(InjectionSettings):
    """The port of sshd."""

    enabled: bool = Field(False, description="Whether anything is injected.")
    port: int = Field(22, ge=1, le=65535, description="The port of sshd for jobs that do not set one.")


def _port(number: object) -> dict[str, object]:
    return {"containerPort": number, "protocol": "TCP"}


def _is_ours(_: str, port: Any) -> bool:
    number = mapping(port).get("containerPort")
    return type(number) is int and 0 < number < 65536 and port == _port(number)


FORMS: Final = (in_worker("spec", "containers", ITEM, "ports", ITEM, holds=_is_ours),)


@injection("host-network", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    pod = job.worker.template.spec if job.worker else None
    if pod is None or not pod.host_network or not pod.containers:
        return
    sidecars = filter(is_sidecar, pod.init_containers or ())
    if any(container.ports for container in (*pod.containers, *sidecars)):
        return
    port = sshd.port(job, settings.port)
    if port is None:
        yield Caution("sshd's port is not known: declare it in the worker's ports, or workers may share a node")
        return
    ports = (*template_path(WORKER), "spec", "containers", 0, "ports")
    if patch.append(ports, _port(port), key="containerPort"):
        yield f"declared port {port} of the workers' sshd, so that each has a node of its own"
