"""Texts for amounts of a quota's resources."""

import pytest

from webhook.api import quantity
from webhook.api.accelerators import DEFAULT_ACCELERATORS
from webhook.predict.quota.wording import number, spelled


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("requests.nvidia.com/gpu", "40", "40 GPUs"),
        ("requests.nvidia.com/gpu", "1", "1 GPU"),
        ("requests.nvidia.com/mig-1g.5gb", "2", "2 GPUs"),
        ("requests.rdma/hca", "2", "2 rdma/hca"),
        ("cpu", "321", "321 CPUs"),
        ("requests.cpu", "1", "1 CPU"),
        ("requests.cpu", "1500m", "1.5 CPUs"),
        ("limits.cpu", "100", "100 CPUs in limits"),
        ("memory", "64Gi", "64Gi memory"),
        ("limits.memory", "1281Gi", "1281Gi memory in limits"),
        ("requests.memory", "1099511627777", "1.0Ti memory"),
        ("requests.memory", "12345678m", "12.1Ki memory"),
        ("requests.memory", "1234567u", "1234567u memory"),
        ("requests.ephemeral-storage", "10G", "10G ephemeral storage"),
        ("requests.storage", "10Gi", "10Gi storage"),
        ("gold.storageclass.storage.k8s.io/requests.storage", "1Ti", "1Ti storage of class gold"),
        ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "1", "1 PersistentVolumeClaim of class gold"),
        ("requests.hugepages-2Mi", "4Mi", "4Mi hugepages-2Mi"),
        ("pods", "21", "21 pods"),
        ("count/pods", "1", "1 pod"),
        ("count/services", "2", "2 Services"),
        ("count/jobs.batch", "1", "1 Job"),
        ("count/mpijobs.kubeflow.org", "3", "3 MPIJobs"),
        ("count/resourceclaims.resource.k8s.io", "3", "3 ResourceClaims"),
        ("gpu.nvidia.com.deviceclass.resource.k8s.io/devices", "16", "16 GPUs"),
        ("nic.example.com.deviceclass.resource.k8s.io/devices", "1", "1 device of class nic.example.com"),
        ("nic.example.com.deviceclass.resource.k8s.io/devices", "2", "2 devices of class nic.example.com"),
        ("count/widgets.example.com", "3", "3 widgets.example.com"),
    ],
)
def test_amount_is_spelled_with_the_noun_of_its_resource(resource: str, amount: str, text: str) -> None:
    assert spelled(resource, quantity.parse(amount), DEFAULT_ACCELERATORS) == text
    counted, _, noun = text.partition(" ")
    assert number(resource, quantity.parse(amount), DEFAULT_ACCELERATORS) == counted
    assert spelled(resource, quantity.parse(amount), DEFAULT_ACCELERATORS, more=True) == f"{counted} more {noun}"


def test_accelerators_of_the_policy_are_called_gpus() -> None:
    assert spelled("requests.example.com/npu", quantity.parse(2), ("example.com/*",)) == "2 GPUs"
    assert spelled("requests.nvidia.com/gpu", quantity.parse(2), ()) == "2 nvidia.com/gpu"
