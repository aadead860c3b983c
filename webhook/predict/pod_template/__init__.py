"""The API server's validation of pods as a library: `faults(document, roles)`.

The API server stores a job with almost any pod template, and validates only the pods that the operator creates later:
these are rejected again and again, and the job's status stays empty. This validates the templates as the API server
will validate the pods, after its own defaults. `model` has the types, which restrict single values; `reading` decodes
by them, and reports the faults if that fails; the modules that start with `check` compare fields. What a feature gate
of the API server decides is not checked.
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
"""

from collections.abc import Iterable

import msgspec

from webhook.api import written
from webhook.api.pod import PodTemplate
from webhook.predict.pod_template import model
from webhook.predict.pod_template.check_pod import Surroundings, check_template
from webhook.predict.pod_template.fault import Fault, Faults, Kind
from webhook.predict.pod_template.reading import decode, decode_job


class Role(msgspec.Struct, frozen=True, gc=False):
    """A replica spec, and the operator's additions to its template."""

    name: str
    path: str
    """The path of its template."""
    template: PodTemplate
    volumes: tuple[str, ...]
    """The volumes that the operator adds."""
    never_restarts: bool


def faults(document: bytes | msgspec.Raw, roles: Iterable[Role], *, without_ranges: bool | None = None) -> list[Fault]:
    """Why the API server will reject the pods of the job in JSON `document`, which has been decoded before.

    `without_ranges` says whether the namespace has no LimitRange that fills in resources; None if that is unknown.
    """
    found = Faults()
    like = model.Template()
    for role in roles:
        template = role.template
        if not isinstance(template, model.Template):
            text = written.templates(document).get(role.name)
            if text is None:
                continue
            template = decode(text, role.path, found)
        around = Surroundings(role.volumes, role.never_restarts, without_ranges, like)
        check_template(template, role.path, found, around)
        like = model.Template() if found else template
    return found


__all__ = ["Fault", "Kind", "Role", "decode_job", "faults"]
