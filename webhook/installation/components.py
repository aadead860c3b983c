"""The components of the manifests that let the service do more than answer reviews, each with rights of its own.

Each adds an option of `serve` and the rights. Without it the service has neither.
"""

from collections.abc import Iterator
from typing import Final

from webhook.client.access_reviews import Right
from webhook.kit.optional_parts import ComponentRights, RoleRule, parts

KEY_REMOVAL: Final = ComponentRights(
    "key-removal", "--remove-keys", "keys of ended jobs stay", (RoleRule("", ("secrets",), ("delete",)),)
)

COMPONENTS: Final = (KEY_REMOVAL, *(rights for part in parts() for rights in part.rights))


def rights_of(component: ComponentRights) -> Iterator[Right]:
    """Each of its rights."""
    for rule in component.rules:
        yield from (Right(verb, rule.group, resource) for resource in rule.resources for verb in rule.verbs)
