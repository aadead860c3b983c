"""What is to be done by hand with jobs of the versions that the operator had before v2beta1.

Their types: https://github.com/kubeflow/mpi-operator/tree/v0.3.0/v2/pkg/apis and its `pkg/apis/kubeflow`.
"""

from typing import Final

from webhook.api.mpijob import API_VERSION

_IMAGE: Final = "Workers run sshd now: the image needs sshd and ssh, and a worker has no command such as sleep"
_LIMITS: Final = "move backoffLimit, activeDeadlineSeconds and cleanPodPolicy from spec into spec.runPolicy"
_MAIN: Final = "put the container that mainContainer names first in both templates and remove mainContainer"
_STEPS: Final = {
    "kubeflow.org/v1": (
        "move cleanPodPolicy from spec into spec.runPolicy",
        _MAIN,
        "remove runPolicy.managedBy",
        "write restartPolicy: Never where there is none",
    ),
    "kubeflow.org/v1alpha2": (_LIMITS, _MAIN),
    "kubeflow.org/v1alpha1": (
        "make spec.template both Launcher.template (without its GPUs) and Worker.template (without its command) of"
        " spec.mpiReplicaSpecs",
        "write spec.replicas as Worker.replicas, or for gpus and processingUnits as many workers as have them together",
        "move backoffLimit and activeDeadlineSeconds from spec into spec.runPolicy",
        "remove the other fields of spec but slotsPerWorker",
    ),
}


def by_hand(version: str) -> str:
    """What makes a job of this version one of v2beta1, in sentences."""
    steps = _STEPS.get(version)
    if steps is None:
        return f"Set apiVersion to {API_VERSION}, and check the fields: other versions have others."
    return f"Set apiVersion to {API_VERSION}; {'; '.join(steps)}. {_IMAGE}."
