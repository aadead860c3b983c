"""The existing jobs that break the current policy: `serve --audit`, and `--audit-reports` for report objects.

`standing` computes the verdicts periodically, `metrics` has their numbers, `reports` writes them to objects, and
`serving` starts them.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, RoleRule

_REPORT_VERBS: Final = ("list", "watch", "create", "patch", "delete")
PART: Final = Part(
    options={
        "--audit": "Count the jobs that break the policy of today, at /metrics/jobs.",
        "--audit-reports": "--audit, and a report object for each; needs the right to.",
    },
    start="webhook.parts.standing_audit.serving:start",
    rights=(
        ComponentRights(
            "audit-reports",
            "--audit-reports",
            "what the audit finds is not written down",
            (
                RoleRule("openreports.io", ("reports",), _REPORT_VERBS),
                RoleRule("wgpolicyk8s.io", ("policyreports",), _REPORT_VERBS),
            ),
        ),
    ),
)
