"""The evaluator of NetworkPolicies against truth tables, after the cases of Kubernetes' own end-to-end tests.

kubernetes `test/e2e/network/netpol/network_policy.go`: three namespaces with three pods each, ports 80 and 81, every
pair of pods. A table says what differs from "everybody reaches everybody"; a pod's way to itself is not looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest

from tests.support.packets import End, Network, matches

NAMESPACES = ("x", "y", "z")
PODS = ("a", "b", "c")
NS = "kubernetes.io/metadata.name"
Edit = tuple[str, str, bool]


def pods(labels: Mapping[str, Mapping[str, str]]) -> dict[str, End]:
    found = {}
    for number, (namespace, pod) in enumerate((n, p) for n in NAMESPACES for p in PODS):
        name = f"{namespace}/{pod}"
        ports = {f"serve-{port}-{p.lower()}": (p, port) for port in (80, 81) for p in ("TCP", "UDP", "SCTP")}
        found[name] = End(f"10.0.{number}.1", pod, namespace, {"pod": pod, **labels.get(name, {})}, ports)
    return found


def policy(selector: Any = None, *, namespace: str = "x", **spec: Any) -> dict[str, Any]:
    """A policy; `ingress` and `egress` also say its types, as upstream's helpers do."""
    types = [kind for kind in ("Ingress", "Egress") if kind.lower() in spec]
    return {
        "metadata": {"namespace": namespace},
        "spec": {"podSelector": selector or {}, "policyTypes": types, **spec},
    }


def labelled(**labels: str) -> dict[str, Any]:
    return {"matchLabels": {key.replace("_", "."): value for key, value in labels.items()}}


def named(*namespaces: str, operator: str = "In") -> dict[str, Any]:
    return {"matchExpressions": [{"key": NS, "operator": operator, "values": list(namespaces)}]}


def port(number: Any, protocol: str = "TCP", **more: int) -> dict[str, Any]:
    return {"port": number, "protocol": protocol, **more}


@dataclass(frozen=True)
class Case:
    """Policies, and what differs from a network without any: (from, to, reached), `*` for every pod, later ones win."""

    title: str
    policies: Sequence[dict[str, Any]]
    edits: Sequence[Edit]
    port: int = 80
    protocol: str = "TCP"
    namespace_labels: tuple[tuple[str, str, str], ...] = ()
    pod_labels: tuple[tuple[str, str, str], ...] = ()


A, B = labelled(pod="a"), labelled(pod="b")
OPEN = policy(ingress=[{}])
B_IN = {"matchExpressions": [{"key": "pod", "operator": "In", "values": ["b"]}]}
Y_BY_LABEL = {"namespaceSelector": {"matchLabels": {NS: "y"}}}
ONLY_Y = [{"namespaceSelector": named("y")}]
NOT_X = named("x", operator="NotIn")
TO_A = [("*", "x/a", False)]
FROM_Y_ALONE = [("x", "x/a", False), ("z", "x/a", False)]
CASES = (
    Case("default deny ingress", [policy(ingress=[])], [("*", "x", False)]),
    Case("default deny all", [policy(ingress=[], egress=[])], [("*", "x", False), ("x", "*", False)]),
    Case("pods by label", [policy(A, ingress=[{"from": [{"podSelector": B}]}])], [*TO_A, ("x/b", "x/a", True)]),
    Case(
        "one target of all that are closed",
        [policy(ingress=[]), policy(A, ingress=[{"from": [{"podSelector": {}, "namespaceSelector": {}}]}])],
        [("*", "x/b", False), ("*", "x/c", False)],
    ),
    Case("all namespaces", [policy(A, ingress=[{"from": [{"namespaceSelector": {}}]}])], []),
    Case("another namespace", [policy(A, ingress=[{"from": ONLY_Y}])], FROM_Y_ALONE),
    Case("pods by expression", [policy(A, ingress=[{"from": [{"podSelector": B_IN}]}])], [*TO_A, ("x/b", "x/a", True)]),
    Case(
        "pods or namespaces",
        [policy(A, ingress=[{"from": [{"namespaceSelector": NOT_X}, {"podSelector": B}]}])],
        [("x/c", "x/a", False)],
    ),
    Case(
        "pods and namespaces",
        [policy(A, ingress=[{"from": [{"namespaceSelector": NOT_X, "podSelector": B}]}])],
        [*TO_A, ("y/b", "x/a", True), ("z/b", "x/a", True)],
    ),
    Case(
        "several pods and namespaces",
        [
            policy(
                A,
                ingress=[
                    {
                        "from": [
                            {
                                "namespaceSelector": NOT_X,
                                "podSelector": {
                                    "matchExpressions": [{"key": "pod", "operator": "In", "values": ["b", "c"]}]
                                },
                            }
                        ]
                    }
                ],
            )
        ],
        [("x", "x/a", False), ("y/a", "x/a", False), ("z/a", "x/a", False)],
    ),
    Case(
        "any of several selectors",
        [policy(A, ingress=[{"from": [{"podSelector": B}, {"podSelector": labelled(pod="c")}]}])],
        [*TO_A, ("x/b", "x/a", True), ("x/c", "x/a", True)],
    ),
    Case(
        "one pod of another namespace",
        [policy(A, ingress=[{"from": [{"namespaceSelector": named("y"), "podSelector": A}]}])],
        [*TO_A, ("y/a", "x/a", True)],
    ),
    Case("ports: the open one", [policy(A, ingress=[{"from": ONLY_Y, "ports": [port(81)]}])], FROM_Y_ALONE, port=81),
    Case("ports: another one", [policy(A, ingress=[{"from": ONLY_Y, "ports": [port(81)]}])], TO_A),
    Case(
        "stacked policies",
        [
            policy(A, ingress=[{"from": ONLY_Y, "ports": [port(81)]}]),
            policy(A, ingress=[{"from": ONLY_Y, "ports": [port(80)]}]),
        ],
        FROM_Y_ALONE,
    ),
    Case("allow all", [OPEN], [], port=81),
    Case("a named port", [policy(ingress=[{"ports": [port("serve-81-tcp")]}])], [], port=81),
    Case("not the named port", [policy(ingress=[{"ports": [port("serve-81-tcp")]}])], [("*", "x", False)]),
    Case(
        "a named port from a namespace",
        [policy(A, ingress=[{"from": ONLY_Y, "ports": [port("serve-80-tcp")]}])],
        FROM_Y_ALONE,
    ),
    Case("egress to a named port", [policy(egress=[{"ports": [port("serve-80-tcp")]}])], []),
    Case("egress to another port", [policy(egress=[{"ports": [port("serve-80-tcp")]}])], [("x", "*", False)], port=81),
    Case("allow all, changed to deny all", [policy(ingress=[])], [("*", "x", False)], port=81),
    Case(
        "a namespace before it has the label",
        [policy(A, ingress=[{"from": [{"namespaceSelector": labelled(ns2="updated")}]}])],
        TO_A,
    ),
    Case(
        "a namespace with a new label",
        [policy(A, ingress=[{"from": [{"namespaceSelector": labelled(ns2="updated")}]}])],
        [*TO_A, ("y", "*", True)],
        namespace_labels=(("y", "ns2", "updated"),),
    ),
    Case(
        "a pod with a new label",
        [policy(A, ingress=[{"from": [{"podSelector": labelled(pod="b", pod2="updated")}]}])],
        [*TO_A, ("x/b", "x/a", True)],
        pod_labels=(("x/b", "pod2", "updated"),),
    ),
    Case(
        "pods of the namespace alone",
        [policy(ingress=[{"from": [{"podSelector": {}}]}])],
        [("y", "x", False), ("z", "x", False)],
    ),
    Case(
        "a pod that becomes isolated",
        [policy(labelled(target="isolated"), ingress=[])],
        TO_A,
        pod_labels=(("x/a", "target", "isolated"),),
    ),
    Case("a pod that is not", [policy(labelled(target="isolated"), ingress=[])], []),
    Case("egress of a pod", [policy(A, egress=[])], [("x/a", "*", False)]),
    Case("egress of a namespace", [policy(egress=[])], [("x", "*", False)]),
    Case(
        "both directions: the open port",
        [policy(A, ingress=[{"from": [{"podSelector": B}]}], egress=[{"ports": [port(80)]}])],
        [*TO_A, ("x/b", "x/a", True)],
    ),
    Case(
        "both directions: another port",
        [policy(A, ingress=[{"from": [{"podSelector": B}]}], egress=[{"ports": [port(80)]}])],
        [*TO_A, ("x/b", "x/a", True), ("x/a", "*", False)],
        port=81,
    ),
    Case(
        "egress is denied although the server allows it",
        [
            policy(A, egress=[{"to": [{"namespaceSelector": named("y"), "podSelector": A}]}]),
            policy(A, namespace="y", ingress=[{"from": [{"namespaceSelector": named("x"), "podSelector": A}]}]),
            policy(B, namespace="y", ingress=[{"from": [{"namespaceSelector": named("x"), "podSelector": A}]}]),
        ],
        [("x/a", "*", False), ("*", "y/a", False), ("*", "y/b", False), ("x/a", "y/a", True)],
    ),
    Case(
        "egress to one pod of another namespace",
        [policy(A, egress=[{"to": [{"namespaceSelector": named("y"), "podSelector": A}]}])],
        [("x/a", "*", False), ("x/a", "y/a", True)],
    ),
    Case("any port of a protocol", [policy(A, ingress=[{"ports": [{"protocol": "TCP"}]}])], [], port=81),
    Case("any port of another protocol", [policy(A, ingress=[{"ports": [{"protocol": "TCP"}]}])], TO_A, protocol="UDP"),
    Case("several policies, one of which allows all", [policy(ingress=[{"from": [{"podSelector": B}]}]), OPEN], []),
    Case("several egress policies, one of which allows all", [policy(egress=[]), policy(egress=[{}])], []),
    Case("no policy any more", [], []),
    # x/a to x/c have 10.0.0.1 to 10.0.2.1, y/a to y/c 10.0.3.1 to 10.0.5.1.
    Case(
        "egress to a block",
        [policy(A, egress=[{"to": [{"ipBlock": {"cidr": "10.0.4.0/24"}}]}])],
        [("x/a", "*", False), ("x/a", "y/b", True)],
    ),
    Case(
        "a block with an exception",
        [policy(A, egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.0.4.1/32"]}}]}])],
        [("x/a", "y/b", False)],
    ),
    Case(
        "an address in a block and in an exception of another",
        [
            policy(A, egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.0.4.1/32"]}}]}]),
            policy(A, egress=[{"to": [{"ipBlock": {"cidr": "10.0.4.1/32"}}]}]),
        ],
        [],
    ),
    Case(
        "ingress and egress are independent",
        [policy(A, ingress=[{"from": [{"podSelector": B}]}]), policy(A, egress=[{}])],
        [*TO_A, ("x/b", "x/a", True)],
    ),
    Case("SCTP is not TCP", [policy(A, ingress=[{"ports": [port(81, "SCTP")]}])], TO_A, port=81),
    Case("a policy for SCTP isolates", [policy(A, ingress=[{"ports": [port(80, "SCTP")]}])], TO_A),
    Case("UDP alone", [policy(A, ingress=[{"ports": [port(81, "UDP")]}])], TO_A, port=81),
    Case("UDP alone, by UDP", [policy(A, ingress=[{"ports": [port(81, "UDP")]}])], [], port=81, protocol="UDP"),
    Case("a namespace by its default label", [policy(A, ingress=[{"from": [Y_BY_LABEL]}])], FROM_Y_ALONE),
    Case(
        "namespaces by expression on the default label",
        [policy(A, ingress=[{"from": [{"namespaceSelector": named("y", "z")}]}])],
        [("x", "x/a", False)],
    ),
    Case("a range that holds the port", [policy(A, ingress=[{"ports": [port(79, endPort=81)]}])], []),
    Case("a range below the port", [policy(A, ingress=[{"ports": [port(1, endPort=79)]}])], TO_A),
    Case("types that are not said: ingress", [{**policy(), "spec": {"podSelector": {}}}], [("*", "x", False)]),
    Case(
        "types that are not said: egress too",
        [{**policy(), "spec": {"podSelector": {}, "ingress": [{}], "egress": [{"ports": [port(81)]}]}}],
        [("x", "*", False)],
    ),
)  # fmt: skip


def covers(pattern: str, pod: str) -> bool:
    return pattern in {"*", pod, pod.split("/", maxsplit=1)[0]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_truth_table(case: Case) -> None:
    labels: dict[str, dict[str, str]] = {name: {NS: name} for name in NAMESPACES}
    for name, key, value in case.namespace_labels:
        labels[name][key] = value
    ends = pods({name: {key: value} for name, key, value in case.pod_labels})
    network = Network(labels, case.policies)
    for source, target in permutations(ends, 2):
        expected = True
        for from_, to, reached in case.edits:
            if covers(from_, source) and covers(to, target):
                expected = reached
        found = network.allows(ends[source], ends[target], case.port, case.protocol)
        assert found is expected, f"{source} -> {target}"


@pytest.mark.parametrize(
    ("operator", "values", "selected"),
    [("In", ["1"], "yes"), ("NotIn", ["1"], "no absent"), ("Exists", [], "yes no"), ("DoesNotExist", [], "absent")],
)
def test_expressions(operator: str, values: list[str], selected: str) -> None:
    objects = {"yes": {"k": "1"}, "no": {"k": "2"}, "absent": {}}
    selector = {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}
    assert [name for name, labels in objects.items() if matches(selector, labels)] == selected.split()


def test_who_is_no_pod_is_reached_by_its_address_alone() -> None:
    ends, outside = pods({}), End("192.0.2.9")
    closed = Network({name: {NS: name} for name in NAMESPACES}, [policy(egress=[{"to": [{"namespaceSelector": {}}]}])])
    assert not closed.allows(ends["x/a"], outside, 443)
    opened = Network(closed.namespaces, [policy(egress=[{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}])])
    assert opened.allows(ends["x/a"], outside, 443)
    assert not opened.allows(ends["x/a"], ends["y/a"], 443)
    assert opened.allows(outside, ends["x/a"], 22)
