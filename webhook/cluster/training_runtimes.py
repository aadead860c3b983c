"""Kubeflow Trainer's runtimes: what TrainJobs are made of. They are watched only where `serve --trainer` asks for it.

The specs of those with an MPI policy are kept whole, since the pods of TrainJobs come from their templates.
"""

from typing import Any, Final

import msgspec

from webhook.api import trainer
from webhook.api.presence import Presence
from webhook.cluster.resource import Resource, Wire, cluster_wide, namespaced


class TrainingRuntime(msgspec.Struct, frozen=True):
    """A runtime of a namespace, or of the cluster."""

    namespace: str
    """Empty for one of the cluster."""
    name: str
    spec: bytes
    """JSON; empty where the runtime is for something else than MPI."""


class _Policy(msgspec.Struct):
    mpi: Presence | None = None


class _Spec(msgspec.Struct, rename="camel"):
    ml_policy: _Policy | None = None


class _Runtime(Wire):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_decoder: Final = msgspec.json.Decoder(_Spec)


def _record(found: _Runtime) -> TrainingRuntime:
    policy = _decoder.decode(found.spec).ml_policy
    of_mpi = policy is not None and policy.mpi is not None
    return TrainingRuntime(found.metadata.namespace, found.metadata.name, bytes(found.spec) if of_mpi else b"")


TRAINING_RUNTIMES: Final = namespaced(
    "trainingruntimes", trainer.RUNTIME, trainer.API_VERSION, wire=_Runtime, record=_record
)
CLUSTER_TRAINING_RUNTIMES: Final = cluster_wide(
    "clustertrainingruntimes", trainer.CLUSTER_RUNTIME, trainer.API_VERSION, wire=_Runtime, record=_record
)
OF_TRAINER: Final[tuple[Resource[Any, Any], ...]] = (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)
