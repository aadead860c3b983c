"""The commands `mpijob-webhook policy ...`, with which administrators write, test and compare policies.

Each command has a file, and `commands` is their group. The work is in other modules, which are imported when a command
runs: `audit_report` for `audit`, `differences` for `diff`, `effective_values` for `effective`, `configmap` and
`first_test` for `new`, `replay_report` for `replay`, `document_schema` for `schema`, `suite` and `suite_run` for
`test`, and `validation` for `validate`.
"""
