"""Resource requests and limits, and references to them: what containers and claims share."""

import msgspec

from webhook.api.presence import Presence


class ResourceRequirements(msgspec.Struct, gc=False):
    """Quantities by resource name, as written: `webhook.api.quantity.parse` reads them. `claims` name devices (DRA)."""

    requests: dict[str, object] | None = None
    limits: dict[str, object] | None = None
    claims: list[Presence | None] | None = None


class ResourceFieldRef(msgspec.Struct, gc=False):
    """A container's resource, in units of `divisor` (a quantity)."""

    divisor: object = None
