"""Jobs from elsewhere, made into MPIJobs of `kubeflow.org/v2beta1`: MPIJobs of older versions, and SageMaker's jobs.

`train_job` goes the other way, from an MPIJob to a TrainJob of Kubeflow Trainer.

`older_jobs.convert` is the way in for the first; each version has a file of its own, and what several have in common
stands in `replica_specs`, `run_policy` and `transport`. `sagemaker` is a room of its own. Whatever is moved, changed in
meaning or lost, and what is left for the user to do, goes into a `report`. Pure: no files, no network, no clock. Only
the wire formats are known here, not what rules would say of the job.
"""
