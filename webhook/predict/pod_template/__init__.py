"""The API server's validation of pods as a library: `faults(document, roles)`.

The API server accepts a job with almost any pod template, and rejects the job's pods later if the template is invalid.
This package validates templates as the API server validates pods. The types in `model` restrict single values, and the
modules `check_*` compare fields. Checks that depend on a feature gate of the API server are left out.
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
"""

from collections.abc import Iterable

import msgspec

from webhook.api import written
from webhook.predict.pod_template import model
from webhook.predict.pod_template.check_containers import Role
from webhook.predict.pod_template.check_pod import check_template
from webhook.predict.pod_template.fault import Fault, Faults, Kind
from webhook.predict.pod_template.reading import decode, decode_job


def faults(document: bytes | msgspec.Raw, roles: Iterable[Role], *, without_ranges: bool | None = None) -> list[Fault]:
    """Why the API server will reject the job's pods. `document` is the job as JSON.

    `without_ranges` is True if no LimitRange of the namespace sets default resources; None if this is unknown.
    """
    result = Faults()
    for role in roles:
        template = role.template
        if not isinstance(template, model.Template):
            text = written.templates(document).get(role.name)
            if text is None:
                continue
            template = decode(text, role.path, result)
        check_template(template, role, result, without_ranges)
    return result


__all__ = ["Fault", "Kind", "Role", "decode_job", "faults"]
