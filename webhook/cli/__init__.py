"""The command `mpijob-webhook`. Each subcommand has a file with its options, its output and its exit code.

`main` is the group of all commands, and `kubectl_plugin` is the same group for kubectl. Optional parts add commands.

A command's file imports no large modules, so that --help is quick. The work is done by a second module, such as
`job_check`, `conversions`, `walkthrough` or `first_job`.

This package does not decide about rejections and injections: its commands call the code that the service also uses.
"""
