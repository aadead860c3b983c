"""The pods that the operator will make of a job, as Pod Security will see them.

What the operator adds to a template is a Secret and a ConfigMap as volumes, mounts, environment, labels, a host name
and sshd as the command (mpi-operator `newWorker` and `newLauncherPodTemplate` in
`pkg/controller/mpi_job_controller.go`). No check at any level objects to one of these or is content with it, so the
template stands for the pod.
"""

from collections.abc import Iterator

import msgspec

from webhook.api.mpijob import LAUNCHER, WORKER, replica_path
from webhook.api.shape import ShapeError, decode_error
from webhook.predict.pod_security.pod import PodTemplate, decode


class _Replica(msgspec.Struct, gc=False):
    template: msgspec.Raw = msgspec.Raw(b"{}")


class _Spec(msgspec.Struct, rename="camel", gc=False):
    mpi_replica_specs: dict[str, _Replica | None] | None = None


class _Job(msgspec.Struct, gc=False):
    spec: _Spec | None = None


_decoder = msgspec.json.Decoder(_Job)


def templates(document: bytes | msgspec.Raw) -> Iterator[tuple[str, str, PodTemplate]]:
    """(role, path, template) of the Launcher, then the Worker, as far as the job in JSON `document` has them.

    ShapeError with the path in the job for the first field of a wrong type.
    """
    try:
        spec = _decoder.decode(document).spec
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise decode_error(error) from None
    replicas = (spec and spec.mpi_replica_specs) or {}
    for role in (LAUNCHER, WORKER):
        if replica := replicas.get(role):
            path = f"{replica_path(role)}.template"
            try:
                yield role, path, decode(replica.template)
            except ShapeError as error:
                raise ShapeError(f"{path}.{error.path}".rstrip("."), error.message) from None
