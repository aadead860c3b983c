"""Kueue's AdmissionChecks: the controllers that decide whether a job may start."""

import msgspec

from webhook.api import kueue
from webhook.cluster.resource import Wire, cluster_wide


class AdmissionCheck(msgspec.Struct, frozen=True):
    """An AdmissionCheck."""

    name: str
    controller: str


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    controller_name: str = ""


class _AdmissionCheck(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)


ADMISSION_CHECKS = cluster_wide(
    "admissionchecks",
    "AdmissionCheck",
    *kueue.API_VERSIONS,
    wire=_AdmissionCheck,
    record=lambda check: AdmissionCheck(check.metadata.name, check.spec.controller_name),
)
