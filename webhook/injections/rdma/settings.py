"""The settings for RDMA devices."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from webhook.api import names, quantity
from webhook.api.accelerators import DEFAULT_ACCELERATORS, RDMA_DEVICES
from webhook.api.quantity import QuantityError
from webhook.injections.limits import MAX_RDMA_DEVICES
from webhook.injections.networks import NetworkNames
from webhook.injections.rdma.rank_environment import Variables
from webhook.kit.settings import InjectionSettings, ResourceNames


def _pages(text: str) -> str:
    try:
        amount = quantity.whole(quantity.parse(text))
    except QuantityError as error:
        raise ValueError(f'"{text}" {error}. {error.fix()}') from None
    if amount <= 0 or amount % (2 << 20):
        raise ValueError(f'"{text}" is not a multiple of 2Mi above zero')
    return text


class Settings(InjectionSettings):
    """The devices, their number, and what is injected with them."""

    always: bool = Field(False, description="Whether jobs with accelerators get RDMA without requesting it.")
    resource: str = Field("", description="The device, such as rdma/ib; empty if the nodes have only one device.")
    per_gpu: int | None = Field(None, ge=1, le=MAX_RDMA_DEVICES, description="Devices for each accelerator of the pod.")
    per_pod: int | None = Field(
        None,
        ge=1,
        le=MAX_RDMA_DEVICES,
        description="Devices for each pod. Without perGpu and perPod, the nodes determine the number.",
    )
    devices: ResourceNames = Field(
        RDMA_DEVICES, description="Names of the resources that are RDMA devices; * matches any text."
    )
    shared: ResourceNames = Field(
        ("rdma/*",), description="Devices that are shares of one adapter: a pod gets one share by default."
    )
    accelerators: ResourceNames = Field(
        DEFAULT_ACCELERATORS, description="Names of the resources that are accelerators; * matches any text."
    )
    hugepages: dict[str, Annotated[str, AfterValidator(_pages)]] = Field(
        {"vpc.amazonaws.com/efa": "5120Mi"},
        description="Huge pages of 2 MiB to request with a device, by the device's name.",
    )
    networks: NetworkNames = Field((), description="The networks, each as namespace/name@interface.")
    environment: Variables = Field(
        {}, description="Variables for the ranks, such as NCCL_IB_HCA, UCX_NET_DEVICES or FI_PROVIDER."
    )
    ipc_lock: bool = Field(False, description="Whether containers get IPC_LOCK if that is allowed and has an effect.")

    @model_validator(mode="after")
    def _consistent(self) -> "Settings":
        if self.per_gpu is not None and self.per_pod is not None:
            raise ValueError("set perGpu or perPod, not both")
        if self.resource and ("/" not in self.resource or names.label_key_problem(self.resource)):
            raise ValueError(f'"{self.resource}" is not a resource name such as rdma/ib')
        return self
