"""Names in the API of Kubeflow Trainer, `trainer.kubeflow.org/v1alpha1`.

Source: https://github.com/kubeflow/trainer/tree/v2.3.0/pkg/apis/trainer/v1alpha1 and `pkg/constants`.
"""

from typing import Final

GROUP: Final = "trainer.kubeflow.org"
API_VERSION: Final = f"{GROUP}/v1alpha1"
TRAIN_JOB: Final = "TrainJob"
RUNTIME: Final = "TrainingRuntime"
CLUSTER_RUNTIME: Final = "ClusterTrainingRuntime"

# Replicated jobs of MPI runtimes. NODE is also the name of the container that runs the training.
LAUNCHER: Final = "launcher"
NODE: Final = "node"
# A label of replicated jobs. If its value is OF_TRAINER, the pods get the fields of a TrainJob's `trainer`.
ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
OF_TRAINER: Final = "trainer"
# The value of `managedBy` for Trainer itself.
CONTROLLER: Final = "trainer.kubeflow.org/trainjob-controller"
# Conditions of ended TrainJobs.
ENDS: Final = ("Complete", "Failed")
# Labels of a JobSet's pods.
JOB_SET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB_NAME: Final = "jobset.sigs.k8s.io/replicatedjob-name"
# Steps before the training, and their fields in a TrainJob's `initializer`. A step's container has the step's name.
INITIALIZERS: Final = {"dataset-initializer": "dataset", "model-initializer": "model"}
# Volumes that Trainer adds to pods.
KEY_VOLUME: Final = "mpi-ssh-auth"
HOSTFILE_VOLUME: Final = "mpi-hostfile"
