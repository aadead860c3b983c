"""The command `mpijob-webhook`. A file contains one command or a few related commands.

A command imports large modules when it runs, to keep --help quick.
"""
