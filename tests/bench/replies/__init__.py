"""Whether a change of the code changes any reply: `python -m tests.bench.replies REVISION`, or `make compare BASE=...`.

`cases` generates reviews of every kind from a seed, `record` answers them with the importable `webhook`, and the
command runs `record` on two trees and compares byte for byte. The newer tree makes the cases, so both answer the same.
"""
