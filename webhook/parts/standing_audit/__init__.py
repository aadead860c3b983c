"""Audits existing jobs with the current policy: `serve --audit`.

`standing` judges the jobs, and `metrics` counts the verdicts.
"""

from typing import Final

from webhook.kit.optional_parts import Part

OPTION: Final = "--audit"
PART: Final = Part(
    options={OPTION: "Count the jobs that break the current policy, at /metrics/jobs."},
    start="webhook.parts.standing_audit.serving:start",
)
