"""Kueue's Cohorts: groups of ClusterQueues and Cohorts that lend each other unused quota.

A Cohort needs no object: it exists if a ClusterQueue or another Cohort names it.
"""

import sys

import msgspec

from webhook.api import kueue
from webhook.cluster.resource import Wire, cluster_wide


class Cohort(msgspec.Struct, frozen=True):
    """A Cohort that has an object in the cluster."""

    name: str
    parent: str
    """The parent Cohort; empty for none."""
    quotas: kueue.Quotas


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    parent_name: str = ""
    resource_groups: list[kueue.ResourceGroup] | None = None


class _Cohort(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _record(decoded: _Cohort) -> Cohort:
    return Cohort(
        decoded.metadata.name, sys.intern(decoded.spec.parent_name), kueue.quotas(decoded.spec.resource_groups)
    )


COHORTS = cluster_wide(
    "cohorts", "Cohort", *kueue.API_VERSIONS, wire=_Cohort, record=_record, group=lambda cohort: cohort.parent
)
