"""The metrics of jobs. The platform prescribes their prefix.

Recording rules in manifests/components/monitoring derive `_running_total` and `_queued_total` from the gauges.
"""

from functools import partial
from typing import Final

from webhook.server.metrics import JOB_PREFIX, READ, metric

_HOUR: Final = 3600
_RUN_BUCKETS: Final = (60, 600, 1800, _HOUR, 4 * _HOUR, 12 * _HOUR, 24 * _HOUR, 72 * _HOUR, 168 * _HOUR)
_QUEUE_BUCKETS: Final = (10, 30, 60, 300, 900, _HOUR, 4 * _HOUR, 12 * _HOUR, 24 * _HOUR, 72 * _HOUR)
_job_counter = partial(metric, "counter", prefix=JOB_PREFIX)
_job_gauge = partial(metric, "gauge", prefix=JOB_PREFIX, on_scrape=True)
_job_histogram = partial(metric, "histogram", prefix=JOB_PREFIX)
_counter = partial(metric, "counter")

JOB_METRICS: Final = (
    _job_counter("created_total{namespace}", f"MPIJobs that were created. {READ}"),
    _job_counter("succeeded_total{namespace}", f"MPIJobs that succeeded. {READ}"),
    _job_counter(
        "failed_total{namespace, reason}",
        "MPIJobs that failed, by reason: DeadlineExceeded, BackoffLimitExceeded, MPIJobEvicted, MPIJobFailed or "
        f"other. {READ}",
    ),
    _job_histogram(
        "duration_seconds{namespace}",
        f"Seconds from the last start or resume of an MPIJob to its end. {READ}",
        buckets=_RUN_BUCKETS,
    ),
    _job_histogram(
        "queue_seconds{namespace}",
        f"Seconds from the creation of an MPIJob until all of its pods ran for the first time. {READ}",
        buckets=_QUEUE_BUCKETS,
    ),
    _job_gauge("running{namespace}", f"MPIJobs whose pods all run. {READ}"),
    _job_gauge(
        "queued{namespace}", f"MPIJobs that have not ended and do not run: they are suspended, or wait for pods. {READ}"
    ),
    _job_gauge(
        "gpus_requested{namespace, resource}",
        f"GPUs and other accelerators requested by queued and running MPIJobs. {READ}",
    ),
    _job_gauge("gpus_in_use{namespace, resource}", f"GPUs and other accelerators of running MPIJobs. {READ}"),
    _job_gauge(
        "user_gpus_in_use{namespace, user, resource}",
        "GPUs and other accelerators of running MPIJobs by the user who created the job. The user is `_unknown` if the "
        "job has no annotation created-by. Users beyond the 500 series with the most GPUs are `_other`. "
        f"{READ}",
    ),
    _job_gauge(
        "deadline_remaining_seconds{namespace}",
        "Seconds until the next MPIJob of the namespace reaches its activeDeadlineSeconds; with --deadline-events. "
        "Take the min of the replicas.",
    ),
    _counter(
        "namespace_reviews_total{namespace, decision}",
        "Reviews of created or changed MPIJobs by decision: allowed or denied; without dry runs. Each replica counts "
        "its own reviews: take the sum.",
    ),
    _counter(
        "namespace_rule_results_total{namespace, rule, action}",
        "Violations by rule and action: deny, warn or audit; without dry runs. Each replica counts the violations in "
        "its own reviews: take the sum.",
    ),
)
"""Exposed at `/metrics/jobs` with --job-metrics or --deadline-events."""
