"""NetworkPolicies for ingress: the protected pods and the allowed sources."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from webhook.api.labels import Selector
from webhook.api.pod import Presence
from webhook.cluster.budget import Budget
from webhook.cluster.limits import MAX_NETWORK_POLICY_PEERS
from webhook.cluster.resource import Wire, namespaced


class NetworkPolicy(msgspec.Struct, frozen=True):
    """A NetworkPolicy for ingress."""

    namespace: str
    name: str
    pods: Selector
    allowed_namespaces: tuple[Selector, ...]
    """The namespaces that have allowed pods. Other pods of these namespaces may be denied."""
    may_allow_own_namespace: bool
    """The policy allows pods of its own namespace, or IP addresses. The addresses may belong to these pods."""

    def denies_own_namespace(self, labels: Mapping[str, str]) -> bool:
        """Whether the policy allows no pod of its own namespace. `labels` are the namespace's labels."""
        return not self.may_allow_own_namespace and not any(
            selector.matches(labels) for selector in self.allowed_namespaces
        )


class _Peer(msgspec.Struct, rename="camel", omit_defaults=True):
    ip_block: Presence | None = None
    namespace_selector: dict[str, Any] | None = None


class _Rule(msgspec.Struct, omit_defaults=True):
    peers: list[_Peer] | None = msgspec.field(default=None, name="from")


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    pod_selector: dict[str, Any] = {}
    policy_types: list[str] | None = None
    ingress: list[_Rule] | None = None


class _NetworkPolicy(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _record(decoded: _NetworkPolicy) -> NetworkPolicy | None:
    spec = decoded.spec
    if spec.policy_types and "Ingress" not in spec.policy_types:
        return None
    rules = spec.ingress or []
    peers = [peer for rule in rules for peer in rule.peers or ()]
    return NetworkPolicy(
        sys.intern(decoded.metadata.namespace),
        decoded.metadata.name,
        Selector.parse(spec.pod_selector),
        tuple(Selector.parse(peer.namespace_selector) for peer in peers if peer.namespace_selector is not None),
        may_allow_own_namespace=not all(rule.peers for rule in rules)
        or any(peer.ip_block is not None or peer.namespace_selector is None for peer in peers),
    )


_BUDGET: Final[Budget[NetworkPolicy]] = Budget(
    size=lambda policy: 1 + len(policy.allowed_namespaces),
    per_record=MAX_NETWORK_POLICY_PEERS,
    per_group=MAX_NETWORK_POLICY_PEERS,
    total=sys.maxsize,
)

NETWORK_POLICIES = namespaced(
    "networkpolicies", "NetworkPolicy", "networking.k8s.io/v1", wire=_NetworkPolicy, record=_record, budget=_BUDGET
)
