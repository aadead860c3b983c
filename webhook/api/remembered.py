"""What is worked out of a pod template alone is kept with the template, which `written` may hand out again."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from webhook.api.pod import PodTemplate

Ts = TypeVarTuple("Ts")
T = TypeVar("T")


def remembered(work: Callable[[PodTemplate, *Ts], T]) -> Callable[[PodTemplate, *Ts], T]:
    """`work`, done once for a template as long as what else it is given stays the same.

    What it gives back belongs to all who ask, in this review and later ones: nobody may change it, and it may depend
    on nothing but what `work` is given.
    """
    name = f"{work.__module__}.{work.__qualname__}"

    def known(template: PodTemplate, *given: *Ts) -> T:
        kept = template.__dict__
        found: tuple[object, T] | None = kept.get(name)
        if found is None or found[0] != given:
            found = kept[name] = given, work(template, *given)
        return found[1]

    known.__doc__ = work.__doc__
    return known
