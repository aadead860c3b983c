"""The command `mpijob-webhook`. Each command has a file.

A command imports large modules when it runs, to keep --help quick.
"""
