"""RuntimeClasses: the overhead of a pod on top of its containers' requests."""

import msgspec

from webhook.api import quantity
from webhook.api.pod_resources import Amounts
from webhook.cluster.resource import Wire, cluster_wide


class RuntimeClass(msgspec.Struct, frozen=True):
    """A runtime class."""

    name: str
    overhead: Amounts | None
    """None if the class has no overhead field."""


class _Overhead(msgspec.Struct, rename="camel", omit_defaults=True):
    pod_fixed: dict[str, object] | None = None


class _RuntimeClass(Wire):
    overhead: _Overhead | None = None


def _record(decoded: _RuntimeClass) -> RuntimeClass:
    if decoded.overhead is None:
        return RuntimeClass(decoded.metadata.name, None)
    # Not rounded: the API server rounds a pod's other amounts before it copies the overhead into the pod.
    overhead = {name: quantity.parse(value) for name, value in (decoded.overhead.pod_fixed or {}).items()}
    return RuntimeClass(decoded.metadata.name, overhead)


RUNTIME_CLASSES = cluster_wide("runtimeclasses", "RuntimeClass", "node.k8s.io/v1", wire=_RuntimeClass, record=_record)
