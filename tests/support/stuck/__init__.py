"""Jobs that do not run, each for another reason, on a real control plane: the tests of `why` use them.

`cases` has the jobs and their reasons, `kubelet` plays what simulated nodes lack: containers that fail, logs.
"""
