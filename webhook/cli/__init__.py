"""The command `mpijob-webhook`, one file a command: what it takes, what it prints, and its exit code.

`main` is the group, `kubectl_plugin` the same as a plug-in of kubectl. A command's file imports nothing heavy, so that
--help and completion are quick. What it does is in a module beside it: `certs` in `certs_status`, `check` in
`job_check` and `level_check`, which `check_report` and `ci_reports` write for CI, `convert_*` in `conversions`, `demo`
in `walkthrough`, `diff` in `job_diff`, `explain` in `explanations`, `init` in `first_job`, `schema` in
`job_document_schema`, `snapshot` in `snapshot_file`, `why` in `why_report` (which shows) and `job_sight` (which reads).
`options`, `terminal`, `progress` and `injected` (shows a patch) are for several commands, `files` reads as kubectl
does, `reference` writes docs.
Nothing here decides what is refused or injected: that is the same code as in the service. No other room imports this.
"""
