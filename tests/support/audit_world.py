"""A cluster with jobs, and a replica that audits them."""

from datetime import date
from math import inf
from typing import Any

from tests.support.job_lives import condition
from tests.support.jobs import changed
from tests.support.kept_objects import JobLists, KeptObjects
from tests.support.logs import Log
from tests.support.policies import layer
from tests.support.watch_api import Time
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.parts.standing_audit.standing import StandingAudit
from webhook.policy.in_force import PolicySet

JOBS = "/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs"
STRICT = "rules: {worker-count: {max: 3}}"
ENDED = {"conditions": [condition("Succeeded")], "completionTime": "2026-01-01T00:00:00Z"}


class AuditWorld:
    """A cluster and one replica that audits the cluster."""

    def __init__(self, cluster: KeptObjects, policy: str = STRICT) -> None:
        self.cluster, self.lists, self.log, self.time = cluster, JobLists(cluster), Log(), Time(end=inf)
        self.policies = PolicySet([layer("p", policy)])
        lists: Any = self.lists
        self.audit = StandingAudit(
            connection=lists,
            view=cluster.view([MPI_JOBS, NAMESPACES]),
            policies=lambda: self.policies,
            today=lambda: date(2026, 11, 21),
            log=self.log,
            sleep=self.time.sleep,
            clock=self.time.clock,
        )


def store(cluster: KeptObjects, name: str, workers: int = 5, generation: int = 1, **changes: Any) -> None:
    metadata = {"metadata.name": name, "metadata.uid": f"uid-{name}", "metadata.generation": generation}
    cluster.put(f"{JOBS}/{name}", changed({**metadata, "Worker.replicas": workers, **changes}))
