"""The command `mpijob-webhook`. `main` is the group of all commands.

Each command has a file with its options, output and exit code. The file imports large modules only when the command
runs, to keep --help quick.
"""
