"""The NetworkPolicies that this companion has made, as it watches them: whose each is, and what it says."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from webhook.api.mpijob import GROUP
from webhook.api.owner import OwnerReference
from webhook.client.store import Kind, by_namespace
from webhook.cluster.resource import ByNamespace
from webhook.companions.network_policy.wanted import LABEL

PATH: Final = "/apis/networking.k8s.io/v1/networkpolicies"


class _Metadata(msgspec.Struct, rename="camel"):
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata
    spec: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SeenPolicy:
    """A NetworkPolicy that exists."""

    owner: str
    """The uid of the MPIJob that controls it; empty where none does."""
    content: str
    """A hash of its spec and its posture."""


def record(found: Mapping[str, Any]) -> SeenPolicy:
    """What counts of an object."""
    return _record(msgspec.convert(found, _Object))


def _record(found: _Object) -> SeenPolicy:
    owners = [owner for owner in found.metadata.owner_references or () if owner.controller]
    uid = next((owner.uid for owner in owners if owner.kind == "MPIJob" and owner.group == GROUP), "")
    # An empty list is stored as none, and types in any order are the same.
    spec = {name: value for name, value in (found.spec or {}).items() if value}
    spec["policyTypes"] = sorted(spec.get("policyTypes") or ())
    content = [(found.metadata.labels or {}).get(LABEL), spec]
    return SeenPolicy(uid, hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest())


_decoder = msgspec.json.Decoder(_Object)

NETWORK_POLICIES: Final[Kind[ByNamespace, SeenPolicy]] = Kind(
    "networkpolicies",
    PATH,
    key=by_namespace,
    project=lambda data: _record(_decoder.decode(data)),
    label_selector=LABEL,
)
