"""What a training job does not say and an MPIJob needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from webhook.converters.sagemaker.instances import Instance

EFA: Final = "efa"
RDMA: Final = "rdma"
NONE: Final = "none"
NETWORKS: Final = (EFA, RDMA, NONE)


@dataclass(frozen=True, slots=True)
class Options:
    """Said once for all jobs."""

    claims: Mapping[str, str] = field(default_factory=dict)
    """By what is in them: the name of a channel, or `code`, `model`, `checkpoints`. A folder may follow: `pvc/dir`."""
    s3_image: str | None = None
    """An image with the AWS CLI, whose init containers fetch what no claim is named for; None for claims alone."""
    s3_secret: str | None = None
    """The Secret with the variables that the AWS CLI logs in by; None where the service account may read the bucket."""
    code_in_image: bool = False
    """The program is in /opt/ml/code of the image, so nothing is fetched or mounted there."""
    image: str | None = None
    """In place of the request's."""
    instances: Mapping[str, Instance] = field(default_factory=dict)
    """Types that are not in the table, or are to be others."""
    processes_per_host: int | None = None
    """Where the request does not say it."""
    workers_per_instance: int = 1
    """Over how many pods an instance is divided."""
    launcher_as_worker: bool = False
    """As many pods as SageMaker had machines, of which the launcher is one."""
    network: str = EFA
    """`efa`: the adapters of the instance type; `rdma`: what the cluster has, by the annotation; `none`."""
    reserve: int = 7
    """Percent of an instance's CPUs and memory that its node keeps for itself."""
    namespace: str | None = None
    pull_secret: str | None = None
    service_account: str | None = None
