"""Jobs that do not run, each for a reason of its own, on a real control plane: what `why` is held against.

`cases` has the jobs and their reasons, `kubelet` plays what the simulated nodes have not: containers that fail, logs.
"""
