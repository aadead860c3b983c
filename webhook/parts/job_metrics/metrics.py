"""The metrics of jobs.

Their prefixes are those that platform documents require. A counter ends in `_total`, and a gauge does not: recording
rules in manifests/components/monitoring give `_running` and `_queued` that name.
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
        "MPIJobs that failed, by why: DeadlineExceeded, BackoffLimitExceeded, MPIJobEvicted, MPIJobFailed or "
        f"other. {READ}",
    ),
    _job_histogram(
        "duration_seconds{namespace}",
        f"From the last start or resume of an MPIJob to its end. {READ}",
        buckets=_RUN_BUCKETS,
    ),
    _job_histogram(
        "queue_seconds{namespace}",
        f"From the creation of an MPIJob until all of its pods ran for the first time. {READ}",
        buckets=_QUEUE_BUCKETS,
    ),
    _job_gauge("running{namespace}", f"MPIJobs of which all pods run. {READ}"),
    _job_gauge(
        "queued{namespace}", f"MPIJobs that have not ended and do not run: they are suspended, or wait for pods. {READ}"
    ),
    _job_gauge(
        "gpus_requested{namespace, resource}",
        f"GPUs and other accelerators that MPIJobs request which have not ended, queued ones included. {READ}",
    ),
    _job_gauge("gpus_in_use{namespace, resource}", f"GPUs and other accelerators of MPIJobs that run. {READ}"),
    _job_gauge(
        "user_gpus_in_use{namespace, user, resource}",
        "The same by the user who created the job, `_unknown` without the annotation created-by. Users beyond the 500 "
        f"series with the most GPUs are `_other`. {READ}",
    ),
    _job_gauge(
        "deadline_remaining_seconds{namespace}",
        "The least time that an MPIJob of the namespace has left before its activeDeadlineSeconds end it; with "
        "--deadline-events. Take the min of the replicas.",
    ),
    _counter(
        "namespace_reviews_total{namespace, decision}",
        "MPIJobs created or changed, by what became of it: allowed or denied; dry runs left out. Of this replica:"
        " take the sum.",
    ),
    _counter(
        "namespace_rule_results_total{namespace, rule, action}",
        "Violations found, by rule and by what they led to: deny, warn or audit; dry runs left out. Of this "
        "replica: take the sum.",
    ),
)
"""At `/metrics/jobs`, with --job-metrics or --deadline-events."""
