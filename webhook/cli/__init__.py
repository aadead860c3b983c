"""The command `mpijob-webhook`, one file a command: its options, its output, and its exit code.

`main` is the group, `kubectl_plugin` the same for kubectl. Some commands come from optional parts. A command's file
imports nothing heavy, so that --help is quick; its work is in a module next to it, such as `job_check`, `conversions`,
`walkthrough` or `first_job`. Shared: `options`, `terminal`, `files`, `injected` (a patch), `ci_reports`, `job_world`
(what a verdict depends on) and `world_sources` (the same, read from a cluster). Nothing here decides what is rejected
or injected: that is the same code as in the service.
"""
