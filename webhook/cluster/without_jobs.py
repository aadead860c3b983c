"""A cluster view without jobs, for verdicts on an existing job.

The job's own use of quotas must not count against the job.
"""

from collections.abc import Hashable, Mapping
from typing import Any, cast

from msgspec.structs import replace

from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.resources.cluster_resource_quotas import CLUSTER_RESOURCE_QUOTAS
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS, ResourceQuota
from webhook.cluster.view import ABSENT, A, Answer, Unknown, ViewOf

_ABSENT: tuple[Resource[Any, Any], ...] = (MPI_JOBS, PODS, RESERVATIONS)


class WithoutJobs(ViewOf):
    """A view without jobs, pods of jobs and reservations, in which no quota is used."""

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        if resource in _ABSENT:
            return ABSENT
        return super().get(resource, key)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        return {} if resource in _ABSENT else super().all(resource)

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        return {} if resource in _ABSENT else super().within(resource, namespace)

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        return {} if resource in _ABSENT else super().groups(resource)

    def answered(self, resource: Resource[Any, Any], answer: A) -> A:
        if resource in {RESOURCE_QUOTAS, CLUSTER_RESOURCE_QUOTAS}:
            if isinstance(answer, ResourceQuota):
                return replace(answer, used={})
            if isinstance(answer, Mapping):
                return cast("A", {key: self.answered(resource, record) for key, record in answer.items()})
        return answer
