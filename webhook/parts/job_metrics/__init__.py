"""Numbers and Events about jobs: `serve --job-metrics` and `serve --deadline-events`.

`happenings` counts, `telemetry` shows the counts at `/metrics/jobs`, and `deadline_events` informs users when a job's
time is nearly over and when it is over. Both use the lives of jobs, which `watches` follows; `serving` starts what the
options require.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, RoleRule

PART: Final = Part(
    options={
        "--deadline-events": "Events on a job at 80 % of its time and at its end; needs the right to.",
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
