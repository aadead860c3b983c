"""Whether a change of the code changes any reply: `python -m tests.bench.replies REVISION`, or `make compare BASE=...`.

`cases` makes reviews of every kind from a seed, `record` answers them with whatever `webhook` can be imported, and the
command runs `record` on two trees and compares byte for byte. The newer tree makes the cases, so both answer the same.
"""
