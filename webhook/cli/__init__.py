"""The command `mpijob-webhook`. Each subcommand has a file with its options, its output and its exit code.

`main` is the group of all commands, and `kubectl_plugin` is the same group for kubectl. Optional parts add commands.

A command's file imports no large modules, so that --help is quick. The work is done by a second module, such as
`job_check`, `conversions`, `walkthrough` or `first_job`.

Rejections and injections are decided by the same code as in the service, which is not in this package.
"""
