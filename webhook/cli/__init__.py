"""The command `mpijob-webhook`, one file a command: what it takes, what it prints, and its exit code.

`main` is the group, `kubectl_plugin` the same for kubectl. A command's file imports nothing heavy, so that --help is
quick; its work is beside it: `certs` in `certs_status`, `check` in `job_check`, `level_check`, `check_report` and
`ci_reports`, `convert_*` in `conversions`, `demo` in `walkthrough`, `diff` in `job_diff`, `explain` in `explanations`,
`init` in `first_job`, `schema` in `job_document_schema`, `snapshot` in `snapshot_file`, `why` in `why_report` and
`job_sight`. For several: `options`, `terminal`, `injected` (a patch), `files`. `reference` writes docs.
Nothing here decides what is refused or injected: that is the same code as in the service. No other room imports this.
"""
