"""What a policy may say of rules and injections whose plug-in is broken: it stays good, and nothing comes of that."""

from dataclasses import dataclass
from typing import Any

from webhook.kit.registry import Registry
from webhook.kit.settings import Settings
from webhook.policy.document import Described


@dataclass(frozen=True, slots=True)
class _StandIn:
    settings: type[Settings]


def with_stand_ins(registry: Registry[Any], unchecked: type[Settings]) -> dict[str, Described]:
    """All that is registered, and in the place of what is broken something with `unchecked` settings."""
    broken = {entry_id: _StandIn(unchecked) for entry_id in registry.unusable}
    return dict(sorted({**broken, **registry}.items()))
