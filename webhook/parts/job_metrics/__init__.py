"""Metrics and Events about jobs: `serve --job-metrics` and `serve --deadline-events`.

`happenings` counts changes of jobs, and `telemetry` exposes the counts at `/metrics/jobs`. `deadline_events` writes
Events before and at the end of a job's time limit.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, RoleRule

PART: Final = Part(
    options={
        "--deadline-events": "Events on a job at 80 % of its time and at its end; needs permission to create Events.",
        "--job-metrics": "Count jobs, their GPUs and verdicts by namespace, at /metrics/jobs.",
    },
    start="webhook.parts.job_metrics.serving:start",
    rights=(
        ComponentRights(
            "deadline-events",
            "--deadline-events",
            "users are not informed when a job's time is nearly over",
            (RoleRule("", ("events",), ("create",)),),
        ),
    ),
)
