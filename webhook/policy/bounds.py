"""How much a policy document may hold: reviews walk over its lists, and none may take long."""

from typing import Any

from webhook.kit.own_rules import PREFIX
from webhook.policy.faults import Location
from webhook.policy.limits import MAX_CUSTOM_RULES, MAX_ENTRIES


def beyond(document: Any) -> list[tuple[Location, str]]:
    """Where, and why, what was read from YAML is too much for a policy: before anything else looks at it."""
    found: list[tuple[Location, str]] = []
    places: list[tuple[Location, Any]] = [((), document)]
    for path, value in places:  # it grows on the way
        if not isinstance(value, dict | list):
            continue
        what, most = ("rules", MAX_CUSTOM_RULES) if path == ("rules", PREFIX) else ("entries", MAX_ENTRIES)
        if len(value) > most:
            found.append((path, f"has {len(value):,} {what}, at most {most:,} are taken"))
            continue
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        places += [((*path, key), each) for key, each in inner]
    return found
