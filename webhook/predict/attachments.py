"""The networks that Multus will attach to a pod, and the devices that these networks use.

Network Resources Injector rejects a pod that names a missing NetworkAttachmentDefinition. If a definition names a
device that no container requests, the injector adds a request for it to the first container (network-resources-injector
`pkg/webhook/webhook.go`). The injector runs after admission by Kueue, so Kueue does not count these devices.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from webhook.api import annotations, names, networks
from webhook.api.networks import Network, NetworksError
from webhook.cluster.resources.network_attachment_definitions import (
    NETWORK_ATTACHMENT_DEFINITIONS,
    NetworkAttachmentDefinition,
)
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.kit.context import Context

_LENGTH: Final = 36
"""Characters of a network's name in a message, because two names of 63 characters do not fit into a warning."""


@dataclass(slots=True)
class Attachments:
    """The networks of one template."""

    text: str
    """The annotation, which lists the networks in `there`."""
    there: list[Network] = field(default_factory=list)
    added: list[Network] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why other networks cannot be added."""

    @property
    def extended(self) -> str:
        """The annotation with the added networks."""
        return networks.extended(self.text, self.added)


def attachments(text: str, required: Iterable[Network], ctx: Context) -> Attachments:
    """Adds the `required` networks to a template whose annotation is `text`."""
    result = Attachments(text)
    try:
        result.there = networks.parse(text)
    except NetworksError as error:
        result.problems.append(f"{networks.NETWORKS} {error}")
        return result
    attached = {network.within(ctx.namespace) for network in result.there}
    interfaces = {_interface(network, place): network for place, network in enumerate(result.there, start=1)}
    for network in required:
        key = network.within(ctx.namespace)
        if key in attached:
            continue
        interface = _interface(network, len(result.there) + len(result.added) + 1)
        definition = ctx.view.get(NETWORK_ATTACHMENT_DEFINITIONS, key)
        named = f"NetworkAttachmentDefinition {_shortened('/'.join(key))}"
        if definition is ABSENT:
            result.problems.append(f"{named} does not exist")
        elif definition is UNKNOWN:
            result.problems.append(f"it is unknown whether {named} exists")
        elif other := interfaces.get(interface):
            shown = annotations.quoted(str(other))
            result.problems.append(f"{_shortened(str(network))} needs the interface {interface}, which {shown} uses")
        else:
            result.added.append(network)
            interfaces[interface] = network
    return result


def devices(attached: Iterable[Network], ctx: Context) -> Counter[str] | None:
    """The number of each device that the networks use; None if a network is unknown or its device name is invalid."""
    counted: Counter[str] = Counter()
    for network in attached:
        definition = ctx.view.get(NETWORK_ATTACHMENT_DEFINITIONS, network.within(ctx.namespace))
        if not isinstance(definition, NetworkAttachmentDefinition):
            return None
        if definition.resource:
            if "/" not in definition.resource or names.label_key_problem(definition.resource):
                return None
            counted[definition.resource] += 1
    return counted


def listed(attached: Sequence[Network], *, room: int) -> str:
    """The names that fit into `room` characters, at least one, and the number of the other networks."""
    shown: list[str] = []
    for network in attached:
        name = _shortened(str(network))
        if shown and len(", ".join([*shown, name])) > room:
            return f"{', '.join(shown)} and {len(attached) - len(shown)} more"
        shown.append(name)
    return ", ".join(shown)


def _shortened(name: str) -> str:
    return name if len(name) <= _LENGTH else f"{name[: _LENGTH - 3]}..."


def _interface(network: Network, place: int) -> str:
    # Multus names interfaces by their position in the annotation (multus-cni `pkg/multus`).
    return network.interface or f"net{place}"
