"""Patches of pod templates, merged as Kubernetes' strategic merge does it, and where each value comes from.

Upstream: `mergeRuntimePatches` of Trainer's `pkg/runtime/core/trainingruntime.go`, and the patch strategies of
https://pkg.go.dev/k8s.io/api/core/v1#PodSpec.
"""

from typing import Any, Final

from webhook.api.untyped import mapping, mappings
from webhook.predict.trainer.size import Work

# Lists whose items are merged by this key; all others are replaced.
_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "volumeMounts": "mountPath",
}
# Mappings whose keys are the user's, and so in brackets.
_OWN_KEYS: Final = frozenset(("labels", "annotations", "nodeSelector", "limits", "requests"))

Origins = dict[str, str]
"""From a path to the one at which it was written; what is not in it comes with the rest."""


def merge(base: Any, patch: dict[str, Any], *, path: str, written: str, origins: Origins, work: Work) -> dict[str, Any]:
    """`base` with `patch`, which is written at `written`, merged in at `path`; neither is changed.

    TooLarge where that is too much `work`.
    """
    merged = dict(mapping(base))
    work.take(len(merged))
    work.take(len(patch), len(path) + len(written))
    of_users = path.rpartition(".")[2] in _OWN_KEYS
    for key, value in patch.items():
        step = f"[{key}]" if of_users else f".{key}"
        here, there = path + step, written + step
        if isinstance(value, dict):
            if key not in merged:
                origins[here] = there
            merged[key] = merge(merged.get(key), value, path=here, written=there, origins=origins, work=work)
        elif key in _KEYS and isinstance(value, list):
            merged[key] = _items(
                merged.get(key), value, key=_KEYS[key], path=here, written=there, origins=origins, work=work
            )
        else:
            merged[key], origins[here] = value, there
    return merged


def _items(
    base: Any, patch: list[Any], *, key: str, path: str, written: str, origins: Origins, work: Work
) -> list[dict[str, Any]]:
    items = mappings(base)
    work.take(len(items))
    work.take(len(patch), len(path) + len(written))
    names = {str(item.get(key)): index for index, item in enumerate(items)}
    for number, item in enumerate(mappings(patch)):
        index = names.setdefault(str(item.get(key)), len(items))
        here, there = f"{path}[{index}]", f"{written}[{number}]"
        if index == len(items):
            items.append(item)
            origins[here] = there
        else:
            items[index] = merge(items[index], item, path=here, written=there, origins=origins, work=work)
    return items
