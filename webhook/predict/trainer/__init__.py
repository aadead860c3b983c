"""What Kubeflow Trainer makes of a TrainJob and its MPI runtime, in the shape of an MPIJob, which rules read.

`replicated_jobs` puts patches into pod templates as Trainer does and has the pods, `shape` makes the MPIJob, and
`places` knows where users wrote what stands at a path of it.
"""
