"""Decides which objects a quota counts, by its scopes and scope selectors.

See `podMatchesScopeFunc` and `pvcMatchesScopeFunc` in Kubernetes. A quota with scopes counts pods and claims only.
"""

import msgspec

PRIORITY_CLASS = "PriorityClass"
VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"


class Scope(msgspec.Struct, frozen=True):
    """A condition for the objects that a quota counts. An entry of the list `scopes` has the operator `Exists`."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def admits(self, value: str) -> bool:
        """Whether an object meets the condition. `value` is the object's class for the scope; empty for no class."""
        match self.operator:
            case "In":
                return value != "" and value in self.values
            case "NotIn":
                return value == "" or value not in self.values
            case "DoesNotExist":
                return value == ""
            case _:
                return value != ""


class PodTraits(msgspec.Struct, frozen=True, omit_defaults=True, tag="pod"):
    """An unknown trait (None) meets no scope."""

    best_effort: bool | None = False
    terminating: bool = False
    priority_class: str | None = ""
    cross_namespace: bool = False

    def meets(self, scope: Scope) -> bool:
        if scope.name == PRIORITY_CLASS:
            return self.priority_class is not None and scope.admits(self.priority_class)
        return {
            "Terminating": self.terminating,
            "NotTerminating": not self.terminating,
            "BestEffort": self.best_effort is True,
            "NotBestEffort": self.best_effort is False,
            "CrossNamespacePodAffinity": self.cross_namespace,
        }.get(scope.name, False)


class ClaimTraits(msgspec.Struct, frozen=True, omit_defaults=True, tag="claim"):
    volume_attributes_class: str = ""

    def meets(self, scope: Scope) -> bool:
        return scope.name == VOLUME_ATTRIBUTES_CLASS and scope.admits(self.volume_attributes_class)


class ObjectTraits(msgspec.Struct, frozen=True, tag="object"):
    def meets(self, scope: Scope) -> bool:
        return False


Traits = PodTraits | ClaimTraits | ObjectTraits
