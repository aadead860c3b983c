"""The commands `mpijob-webhook policy ...`, one file a command: what administrators need to write a policy.

`commands` is the group. The work of each command is in a module next to it, which is imported when the command runs:
`audit` in `audit_report`, `diff` in `differences`, `effective` in `effective_values`, `new` in `configmap` and
`first_test`, `replay` in `replay_report`, `schema` in `document_schema`, `test` in `suite` and `suite_run`, `validate`
in `validation`. `documents` finds policies in files; `inputs` ends a command with unusable input. `webhook.policy`
decides what a policy means, `admission` what happens to a job.
"""
