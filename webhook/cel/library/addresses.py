"""`ip('10.0.0.1')`, `cidr('10.0.0.0/8')` and their functions.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/ip.go and `cidr.go`
"""

import ipaddress
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from webhook.cel.library.declared import BOOL, INT, STRING, Declared, Function, Method, Text, parses

Parsed = IPv4Address | IPv6Address


class Address(Text):
    """An IP address in canonical form."""

    type = "kubernetes.IP"

    @property
    def parsed(self) -> Parsed:
        return ipaddress.ip_address(self.text)


class Network(Text):
    """An IP address in canonical form with a prefix length."""

    type = "kubernetes.CIDR"

    @property
    def parsed(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The network without the host bits."""
        return ipaddress.ip_network(self.text, strict=False)


def _address(text: str) -> Address:
    address = ipaddress.ip_address(text)
    if isinstance(address, IPv6Address) and (address.scope_id or address.ipv4_mapped):
        raise ValueError(f"IP Address {text!r} has a zone, or is an IPv4-mapped IPv6 address: neither is allowed")
    return Address(str(address))


def _network(text: str) -> Network:
    address, slash, length = text.partition("/")
    if not slash or not length.isascii() or not length.isdecimal() or (len(length) > 1 and length.startswith("0")):
        raise ValueError(f"network address parse error: {text!r}")
    parsed = _address(address)
    if int(length) > parsed.parsed.max_prefixlen:
        raise ValueError(f"network address parse error: the prefix of {text!r} is too long")
    return Network(f"{parsed.text}/{length}")


def _is_link_local_multicast(address: Address) -> bool:
    parsed = address.parsed
    if isinstance(parsed, IPv4Address):
        return parsed.packed[:3] == bytes((224, 0, 0))
    return parsed.packed[0] == 0xFF and parsed.packed[1] & 0x0F == 0x02


def _is_global_unicast(address: Address) -> bool:
    parsed = address.parsed
    is_broadcast = isinstance(parsed, IPv4Address) and parsed.packed == bytes((255,) * 4)
    return not (
        parsed.is_unspecified or parsed.is_loopback or parsed.is_multicast or parsed.is_link_local or is_broadcast
    )


def _contains_address(network: Network, address: Address) -> bool:
    return address.parsed in network.parsed


def _contains_network(network: Network, other: Network) -> bool:
    ours, theirs = network.parsed, other.parsed
    return ours.version == theirs.version and theirs.subnet_of(ours)  # type: ignore[arg-type]


FUNCTIONS: Final[tuple[Declared, ...]] = (
    Function("ip", [STRING], Address, _address),
    Function("isIP", [STRING], BOOL, parses(_address)),
    Function("ip.isCanonical", [STRING], BOOL, lambda text: _address(text).text == text),
    Function("string", [Address], STRING, lambda address: address.text),
    Method("family", [Address], INT, lambda address: address.parsed.version),
    Method("isUnspecified", [Address], BOOL, lambda address: address.parsed.is_unspecified),
    Method("isLoopback", [Address], BOOL, lambda address: address.parsed.is_loopback),
    Method("isLinkLocalUnicast", [Address], BOOL, lambda address: address.parsed.is_link_local),
    Method("isLinkLocalMulticast", [Address], BOOL, _is_link_local_multicast),
    Method("isGlobalUnicast", [Address], BOOL, _is_global_unicast),
    Function("cidr", [STRING], Network, _network),
    Function("isCIDR", [STRING], BOOL, parses(_network)),
    Function("string", [Network], STRING, lambda network: network.text),
    Method("containsIP", [Network, Address], BOOL, _contains_address),
    Method("containsIP", [Network, STRING], BOOL, lambda network, text: _contains_address(network, _address(text))),
    Method("containsCIDR", [Network, Network], BOOL, _contains_network),
    Method("containsCIDR", [Network, STRING], BOOL, lambda network, text: _contains_network(network, _network(text))),
    Method("ip", [Network], Address, lambda network: Address(network.text.partition("/")[0])),
    Method("masked", [Network], Network, lambda network: Network(str(network.parsed))),
    Method("prefixLength", [Network], INT, lambda network: network.parsed.prefixlen),
)
