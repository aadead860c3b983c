"""Taints of nodes, and whether a pod tolerates them (kubernetes `core/v1/toleration.go`, `ToleratesTaint`)."""

from collections.abc import Iterable
from typing import Final

import msgspec

from webhook.api.pod import Toleration

REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})
"""The effects that keep a pod off a node; `PreferNoSchedule` does not."""


class Taint(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    key: str = ""
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> list[Taint]:
    tolerations = tuple(tolerations)
    return [
        taint
        for taint in taints
        if taint.effect in REPELLING and not any(tolerates(toleration, taint) for toleration in tolerations)
    ]


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration matches the taint. The operators `Gt` and `Lt` (new in 1.35) count as a match."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator not in {None, "", "Equal"} or (toleration.value or "") == taint.value
