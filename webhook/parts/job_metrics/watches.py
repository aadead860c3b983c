"""Watches on jobs and launchers with the fields that admission does not read."""

from typing import Final

from webhook.client.store import Kind, by_namespace
from webhook.cluster.job_lives import JobLife, Launcher, job_life, launcher
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.jobs import JOBS
from webhook.cluster.resources.mpijobs import MPI_JOBS

JOB_LIVES: Final[Kind[ByNamespace, JobLife]] = Kind(
    "job-lives", MPI_JOBS.path(MPI_JOBS.api_versions[0]), key=by_namespace, project=job_life
)
LAUNCHERS: Final[Kind[ByNamespace, Launcher]] = Kind(
    "launchers", JOBS.path(JOBS.api_versions[0]), key=by_namespace, project=launcher
)
