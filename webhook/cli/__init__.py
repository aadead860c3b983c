"""The command `mpijob-webhook`, one file a command: what it takes, what it prints, and its exit code.

`main` is the group. A command's file imports nothing heavy, so that --help and completion are quick; what the command
does is in a module beside it, which is imported when the command runs. `options` and `terminal` are for all commands,
`files` reads Kubernetes objects as kubectl does, and `reference` writes the pages of the documentation.

Nothing here decides what is refused or injected: that is the same code as in the service. No other room imports this.
"""
