"""Jobs that do not run, each for a different reason, on a real control plane, for the tests of `why`.

`cases` has the jobs and their reasons. `kubelet` provides failing containers and logs, which simulated nodes lack.
"""
