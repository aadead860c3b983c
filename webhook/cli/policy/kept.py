"""The policies that a cluster keeps in ConfigMaps, made of these as the service does it."""

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.cli.files import Manifest
from webhook.cli.policy.documents import mapping
from webhook.policy import last_good, store
from webhook.policy.in_force import policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import REMEMBERED, PolicySource


def in_force(found: Iterable[Manifest], policy_namespace: str) -> tuple[tuple[Layer, ...], list[str]]:
    """The policies among the objects of a file, and what is wrong with them."""
    configmaps = [m.document for m in found if (m.kind, m.namespace) == ("ConfigMap", policy_namespace)]
    remembered = next((each for each in configmaps if each["metadata"].get("name") == REMEMBERED), {})
    return loaded([each for each in configmaps if _is_policy(each)], remembered)


def loaded(
    configmaps: Iterable[Mapping[str, Any]], remembered: Mapping[str, Any]
) -> tuple[tuple[Layer, ...], list[str]]:
    """What the service makes of these ConfigMaps, with what it remembered of them when they were good; and problems."""
    sources = []
    for configmap in configmaps:
        text = mapping(configmap, "data").get(store.KEY)
        metadata = mapping(configmap, "metadata")
        version = str(metadata.get("resourceVersion", ""))
        sources.append(PolicySource(str(metadata.get("name")), "", version, text if isinstance(text, str) else None))
    found = store.load(sources, last_good.texts(mapping(remembered, "data")), policy_model())
    problems = []
    for name, error in found.errors.items():
        instead = "its last good document is" if found.states[name] == "last-good" else "nothing of it is"
        problems.append(f'policy "{name}" is broken, {instead} in force: {"; ".join(error.splitlines())}')
    return found.layers, problems


def _is_policy(configmap: Mapping[str, Any]) -> bool:
    return mapping(mapping(configmap, "metadata"), "labels").get(store.LABEL) == "true"
