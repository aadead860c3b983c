"""The optional components of the manifests. Each enables an option of `serve`, and grants the rights for the option."""

from collections.abc import Iterator
from typing import Final

from webhook.client.access_reviews import Right
from webhook.kit.optional_parts import ComponentRights, RoleRule, parts

KEY_REMOVAL: Final = ComponentRights(
    "key-removal", "--remove-keys", "keys of ended jobs stay", (RoleRule("", ("secrets",), ("delete",)),)
)

COMPONENTS: Final = (KEY_REMOVAL, *(rights for part in parts() for rights in part.rights))


def rights_of(component: ComponentRights) -> Iterator[Right]:
    for rule in component.rules:
        yield from (Right(verb, rule.group, resource) for resource in rule.resources for verb in rule.verbs)
