"""Names in the API of Kubeflow Trainer, `trainer.kubeflow.org/v1alpha1`.

Source: https://github.com/kubeflow/trainer/tree/v2.3.0/pkg/apis/trainer/v1alpha1 and `pkg/constants`.
"""

from typing import Final

GROUP: Final = "trainer.kubeflow.org"
API_VERSION: Final = f"{GROUP}/v1alpha1"
TRAIN_JOB: Final = "TrainJob"
RUNTIME: Final = "TrainingRuntime"
CLUSTER_RUNTIME: Final = "ClusterTrainingRuntime"

# The replicated jobs of an MPI runtime. NODE is also the name of the container that runs the training.
LAUNCHER: Final = "launcher"
NODE: Final = "node"
# The label with the purpose of a replicated job. OF_TRAINER: Trainer applies a TrainJob's `trainer` to it.
ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
OF_TRAINER: Final = "trainer"
# The value of `managedBy` for Trainer.
CONTROLLER: Final = "trainer.kubeflow.org/trainjob-controller"
# The conditions of a TrainJob that has ended.
ENDS: Final = ("Complete", "Failed")
# Labels that all pods of a JobSet have.
JOB_SET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB_NAME: Final = "jobset.sigs.k8s.io/replicatedjob-name"
# The steps before the training, and their fields in a TrainJob's `initializer`. A step's container has its name.
INITIALIZERS: Final = {"dataset-initializer": "dataset", "model-initializer": "model"}
# Names of the volumes that Trainer adds to pods.
KEY_VOLUME: Final = "mpi-ssh-auth"
HOSTFILE_VOLUME: Final = "mpi-hostfile"
