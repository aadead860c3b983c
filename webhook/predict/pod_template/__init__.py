"""The API server's validation of pods as a library: `faults(templates, roles)`.

The API server stores a job with almost any pod template, and validates only the pods that the operator makes of it
later: these are refused again and again, and the job's status stays empty. This validates the templates as the API
server will validate the pods, after its own defaults. The modules with types hold what is good in a value by itself;
`reading` decodes by them, and says what is wrong where that fails; the modules that start with `check` look across
fields. What a feature gate of the API server decides is left alone: that it takes less than it might is for itself to
say. https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from webhook.api.pod import PodTemplate
from webhook.api.remembered import remembered
from webhook.api.written import Templates
from webhook.predict.pod_template.check_pod import Surroundings, check_template
from webhook.predict.pod_template.fault import MOST, Fault, Faults, Kind
from webhook.predict.pod_template.reading import decode

SMALL: Final = 16 * 1024
"""Bytes of a template of which parts may be remembered."""


class Role(msgspec.Struct, frozen=True, gc=False):
    """A replica spec, and what the operator makes of its template."""

    name: str
    path: str
    """Where its template stands."""
    volumes: tuple[str, ...]
    """Those that the operator adds."""
    never_restarts: bool
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)
    """As it was read, where it may have been before."""


def faults(templates: Templates, roles: Iterable[Role], *, without_ranges: bool | None = None) -> list[Fault]:
    """Why the API server will refuse the pods of a job with these templates.

    `without_ranges` says whether the namespace has no LimitRange that fills in resources; None where that is unknown.
    """
    found = Faults()
    for role in roles:
        text = templates.get(role.name, b"")
        known, good = (role.volumes, role.never_restarts, without_ranges), _good(role.template)
        if text and known not in good:
            before = len(found)
            around = Surroundings(role.volumes, role.never_restarts, without_ranges, len(text) <= SMALL)
            check_template(decode(text, role.path, found), role.path, found, around)
            if len(found) == before < MOST:
                good.add(known)
    return found


@remembered
def _good(_: PodTemplate) -> set[tuple[tuple[str, ...], bool, bool | None]]:
    """Around what it is a good template."""
    return set()


__all__ = ["Fault", "Kind", "Role", "faults"]
