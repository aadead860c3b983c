"""Reads a job from standard input, submits the job with a Kubeflow SDK, and prints the result.

Usage: `program.py SDK KUBECONFIG NAMESPACE`.
"""

import json
import sys
from typing import Any


def trainer(kubeconfig: str, namespace: str, job: dict[str, Any]) -> Any:
    """Submits a TrainJob with the package `kubeflow` and returns the name of the TrainJob."""
    from kubeflow.trainer import CustomTrainerContainer, KubernetesBackendConfig, TrainerClient  # noqa: PLC0415
    from kubeflow.trainer.options import Name  # noqa: PLC0415

    client = TrainerClient(KubernetesBackendConfig(config_file=kubeconfig, namespace=namespace))
    runtime, name = client.get_runtime(job.pop("runtime")), Name(job.pop("name"))
    return client.train(runtime=runtime, trainer=CustomTrainerContainer(**job), options=[name])


def training(kubeconfig: str, namespace: str, job: dict[str, Any]) -> Any:
    """Submits an MPIJob with the package `kubeflow-training` and returns the annotations of the MPIJob."""
    from kubeflow.training import TrainingClient  # noqa: PLC0415
    from kubeflow.training.utils.utils import FakeResponse  # noqa: PLC0415

    client = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind="MPIJob")
    job = client.api_client.deserialize(FakeResponse(job), "KubeflowOrgV1MPIJob")
    client.create_job(job)
    return client.get_job(job.metadata.name).metadata.annotations


def main() -> None:
    """Submits the job. Extracts the API server's message from errors as docs/clients.md describes."""
    sdk, kubeconfig, namespace = sys.argv[1:]
    try:
        result = {"trainer": trainer, "training": training}[sdk](kubeconfig, namespace, json.load(sys.stdin))
    except RuntimeError as error:
        result = {"error": str(error), "message": json.loads(error.__cause__.body)["message"]}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
