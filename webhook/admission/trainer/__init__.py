"""TrainJobs of Kubeflow Trainer that run MPI, and their runtimes: judged by the rules for MPIJobs, and never changed.

`pipeline` decides, `selection` says which rules are asked, and `upstream` has what Trainer and JobSet do otherwise.
"""
