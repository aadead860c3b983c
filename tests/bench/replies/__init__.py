"""Compares the replies of two revisions: `python -m tests.bench.replies REVISION`, or `make compare BASE=...`.

`cases` generates reviews of every kind from a seed, and `record` writes the replies of the package `webhook` that it
imports. The command runs `record` with both revisions and compares the replies byte for byte. Both revisions get the
same cases, which the current working tree generates.
"""
