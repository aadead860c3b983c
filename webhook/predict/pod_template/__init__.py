"""The API server's validation of pods as a library: `faults(templates, roles)`.

The API server stores a job with almost any pod template, and validates only the pods that the operator makes of it
later: these are refused again and again, and the job's status stays empty. This validates the templates as the API
server will validate the pods, after its own defaults. The modules with types hold what is good in a value by itself;
`reading` decodes by them, and says what is wrong where that fails; the modules that start with `check` look across
fields. What a feature gate of the API server decides is left alone: that it takes less than it might is for itself to
say. https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
"""

from collections.abc import Iterable

import msgspec

from webhook.api.written import Templates
from webhook.predict.pod_template.check_pod import Surroundings, check_template
from webhook.predict.pod_template.fault import Fault, Faults, Kind
from webhook.predict.pod_template.reading import decode


class Role(msgspec.Struct, frozen=True, gc=False):
    """A replica spec, and what the operator makes of its template."""

    name: str
    path: str
    """Where its template stands."""
    volumes: tuple[str, ...]
    """Those that the operator adds."""
    never_restarts: bool


def faults(templates: Templates, roles: Iterable[Role], *, without_ranges: bool | None = None) -> list[Fault]:
    """Why the API server will refuse the pods of a job with these templates.

    `without_ranges` says whether the namespace has no LimitRange that fills in resources; None where that is unknown.
    """
    found = Faults()
    for role in roles:
        if text := templates.get(role.name, b""):
            around = Surroundings(role.volumes, role.never_restarts, without_ranges)
            check_template(decode(text, role.path, found), role.path, found, around)
    return found


__all__ = ["Fault", "Kind", "Role", "faults"]
