"""Decides whether NetworkPolicies allow a connection, by the API's definition for pods, namespaces and ports.

https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/network-policy-v1/ and
https://kubernetes.io/docs/concepts/services-networking/network-policies/. Network plugins differ where the API has no
definition (hairpins, the host network, ICMP). Here, a pod reaches itself, and pods in the host network are external
addresses.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Selector = Mapping[str, Any]


@dataclass(frozen=True)
class End:
    """An end of a connection: a pod in `namespace`, or an external address without a namespace."""

    address: str
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    ports: Mapping[str, tuple[str, int]] = field(default_factory=dict, hash=False)
    """(protocol, number) of the pod's named ports."""


@dataclass(frozen=True)
class Network:
    namespaces: Mapping[str, Mapping[str, str]]
    policies: Sequence[Mapping[str, Any]]

    def allows(self, source: End, target: End, port: int, protocol: str = "TCP") -> bool:
        """Whether `source` can connect to this port of `target`: the egress of `source` and the ingress of `target`
        must allow it.
        """
        if source == target:
            return True
        where = (target, port, protocol)
        return self._lets("Egress", source, target, where) and self._lets("Ingress", target, source, where)

    def _lets(self, direction: str, end: End, peer: End, where: tuple[End, int, str]) -> bool:
        policies = [policy for policy in self.policies if _selects(policy, end) and direction in _types(policy["spec"])]
        if not policies:
            return True  # not isolated
        rules, peers = ("ingress", "from") if direction == "Ingress" else ("egress", "to")
        return any(
            self._peers(rule.get(peers), policy["metadata"]["namespace"], peer) and _ports(rule.get("ports"), *where)
            for policy in policies
            for rule in policy["spec"].get(rules) or ()
        )

    def _peers(self, peers: Iterable[Mapping[str, Any]] | None, namespace: str, end: End) -> bool:
        return not peers or any(self._peer(peer, namespace, end) for peer in peers)

    def _peer(self, peer: Mapping[str, Any], namespace: str, end: End) -> bool:
        if "ipBlock" in peer:
            block, address = peer["ipBlock"], ip_address(end.address)
            return address in ip_network(block["cidr"]) and not any(
                address in ip_network(cidr) for cidr in block.get("except") or ()
            )
        if not end.namespace:
            return False
        within = (
            matches(peer["namespaceSelector"], self.namespaces[end.namespace])
            if "namespaceSelector" in peer
            else end.namespace == namespace
        )
        return within and matches(peer.get("podSelector") or {}, end.labels)


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects an object with these labels. An empty selector selects everything."""
    required = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in required.items()):
        return False
    for expression in selector.get("matchExpressions") or ():
        value, values = labels.get(expression["key"]), expression.get("values") or ()
        held = {
            "In": value is not None and value in values,
            "NotIn": value is None or value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not held[expression["operator"]]:
            return False
    return True


def _selects(policy: Mapping[str, Any], end: End) -> bool:
    return policy["metadata"]["namespace"] == end.namespace and matches(policy["spec"]["podSelector"], end.labels)


def _types(spec: Mapping[str, Any]) -> list[str]:
    """The policy types. The default is Ingress; a policy with an egress rule also has Egress by default."""
    return spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _ports(ports: Iterable[Mapping[str, Any]] | None, target: End, port: int, protocol: str) -> bool:
    if not ports:
        return True
    for allowed in ports:
        if allowed.get("protocol", "TCP") != protocol:
            continue
        number = allowed.get("port")
        if isinstance(number, str):
            if target.ports.get(number) == (protocol, port):
                return True
        elif number is None or number <= port <= allowed.get("endPort", number):
            return True
    return False
