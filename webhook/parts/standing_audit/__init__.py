"""Audits existing jobs with the current policy: `serve --audit`, and `--audit-reports` for report objects.

`standing` judges the jobs, `metrics` counts the verdicts, and `reports` writes the verdicts to report objects.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, RoleRule

_REPORT_VERBS: Final = ("list", "watch", "create", "patch", "delete")
PART: Final = Part(
    options={
        "--audit": "Count the jobs that break the current policy, at /metrics/jobs.",
        "--audit-reports": "Like --audit, with a report object for each such job; needs permission to write them.",
    },
    start="webhook.parts.standing_audit.serving:start",
    rights=(
        ComponentRights(
            "audit-reports",
            "--audit-reports",
            "the audit writes no reports",
            (
                RoleRule("openreports.io", ("reports",), _REPORT_VERBS),
                RoleRule("wgpolicyk8s.io", ("policyreports",), _REPORT_VERBS),
            ),
        ),
    ),
)
