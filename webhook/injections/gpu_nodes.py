"""Pods that request GPUs prefer GPU nodes, require the product that the job names, and tolerate the nodes' taints.

Three fields are injected, each only into a pod template that requests accelerators:

- a node affinity to the label of nodes with accelerators, such as `nvidia.com/gpu.present`. By default the affinity is
  a preference, because new nodes of a group that is scaled up from zero may lack the label. The setting
  `nodeAffinity: required` makes the label a requirement. The requirement is added to every term of a required node
  affinity, because a node needs to match only one term. The requirement becomes a preference if the nodes are unknown,
  and is left out if no node has the label: the GPU request alone keeps the pod off other nodes.
- the product, or several separated by commas, that the job names in its annotation `training.openshift.io/gpu-product`.
  The product is always a requirement, because the user chose it.
- a toleration for the taint of nodes with these accelerators, if the taint's effect is NoSchedule and its key is the
  name of the resource or one of the vendor's `taints`. Other taints are not tolerated, because they reserve nodes for
  other pods. Kubernetes' admission plugin ExtendedResourceToleration also adds tolerations for the names of resources.

A resource claim does not show the vendor of its devices, or whether they are GPUs. A pod with claims gets only the
preference, and only if the nodes have the label of a single vendor.

If the job's `nodeSelector` or a term of its node affinity has the key of one of these labels, the user's choice stays,
and the key is not added to other terms.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import AfterValidator, Field

from webhook.api import annotations, names
from webhook.api.accelerators import accelerators, extended_resources, is_accelerator
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodTemplate
from webhook.api.taints import untolerated
from webhook.api.untyped import mapping
from webhook.cluster.view import UNKNOWN, Unknown
from webhook.injections import Caution, injection
from webhook.injections.limits import MAX_GPU_PRODUCTS
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, in_templates
from webhook.kit.importance import Importance
from webhook.kit.node_affinity import (
    PREFERRED,
    REQUIRED,
    Requirement,
    is_free,
    is_preference,
    is_requirement,
    is_term,
    prefer,
    require,
)
from webhook.kit.patch import PatchBuilder, Path, template_path
from webhook.kit.settings import OFF_UNQUOTED, InjectionSettings, ResourceNames
from webhook.kit.settings import Settings as PolicySettings
from webhook.predict.nodes import AllNodes, all_nodes

NO_SCHEDULE: Final = "NoSchedule"


def _key(key: str) -> str:
    if key and (problem := names.label_key_problem(key)):
        raise ValueError(f'"{key}" {problem}')
    return key


Key = Annotated[str, AfterValidator(_key)]


class Vendor(PolicySettings):
    """The labels and taints of nodes with a vendor's accelerators."""

    resources: ResourceNames = Field(description="Resources that pods request; `*` matches any text.")
    present: Key = Field("", description="The label of nodes with the resource, with the value true; empty for none.")
    product: Key = Field("", description="The label with the name of the product; empty for none.")
    taints: tuple[Key, ...] = Field(
        (), description="Keys of taints of these nodes that are tolerated, in addition to the resource's name."
    )


VENDORS: Final = (
    # https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md
    Vendor.model_construct(
        resources=("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
        present="nvidia.com/gpu.present",
        product="nvidia.com/gpu.product",
        taints=("nvidia.com/gpu",),
    ),
    # https://github.com/ROCm/gpu-operator, its rule for Node Feature Discovery, and its node labeller
    Vendor.model_construct(
        resources=("amd.com/gpu",),
        present="feature.node.kubernetes.io/amd-gpu",
        product="amd.com/gpu.product-name",
    ),
    # https://intel.github.io/intel-device-plugins-for-kubernetes/cmd/gpu_plugin/labels.html
    Vendor.model_construct(
        resources=("gpu.intel.com/i915", "gpu.intel.com/xe"),
        present="intel.feature.node.kubernetes.io/gpu",
        product="gpu.intel.com/product",
    ),
    Vendor.model_construct(resources=("habana.ai/gaudi",)),
)

Strength = Annotated[Literal["preferred", "required", "off"], OFF_UNQUOTED]


class Settings(InjectionSettings):
    """The labels and taints of GPU nodes, and whether pods prefer or require these nodes."""

    node_affinity: Strength = Field(
        "preferred", description="Whether nodes with the label are preferred or required; off injects no affinity."
    )
    tolerations: bool = Field(True, description="Whether the taints of these nodes are tolerated.")
    vendors: tuple[Vendor, ...] = Field(
        VENDORS, max_length=16, description="Accelerators, and the labels of their nodes."
    )


def _toleration(key: str) -> dict[str, object]:
    return {"key": key, "operator": "Exists", "effect": NO_SCHEDULE}


def _is_toleration(_: str, item: Any) -> bool:
    key = mapping(item).get("key")
    return isinstance(key, str) and bool(key) and item == _toleration(key)


_TERM: Final = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms", ITEM)
FORMS: Final = (
    *in_templates("spec", "affinity", "nodeAffinity", PREFERRED, ITEM, holds=is_preference),
    *in_templates(*_TERM, holds=is_term, when=ComesBack.SAME_FILE),
    *in_templates(*_TERM, "matchExpressions", ITEM, holds=is_requirement, when=ComesBack.SAME_FILE),
    *in_templates("spec", "tolerations", ITEM, holds=_is_toleration, when=ComesBack.SAME_FILE),
)


@injection("gpu-nodes", Settings, since="0.1", importance=Importance.MINOR, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    nodes = all_nodes(ctx.view)
    products = _products(job)
    done = _Done()
    for role, _, replica in job.replicas:
        if replica.template.spec is None:
            continue
        spec = (*template_path(role), "spec")
        for vendor, resources in _vendors(replica.template, settings, nodes):
            pods = _Pods(spec, replica.template, vendor, resources)
            done.requests_gpus |= bool(resources)
            _choose_nodes(patch, pods, _strength(pods, settings, nodes), products, done)
            if nodes is not UNKNOWN and settings.tolerations:
                _tolerate(patch, pods, nodes, done)
    if done.notes:
        yield f"added {', '.join(done.notes)}"
    for key in done.absent:
        yield Caution(f"no node has the label {key}, so it is not required")
    yield from _unserved(job, products, done)


class _Pods(msgspec.Struct, frozen=True):
    spec: Path
    """The path of the template's spec."""
    template: PodTemplate
    vendor: Vendor
    resources: list[str]
    """The requested accelerators of the vendor; empty for devices of claims."""


class _Done(msgspec.Struct):
    """The changes to all templates."""

    notes: dict[str, None] = msgspec.field(default_factory=dict)
    absent: dict[str, None] = msgspec.field(default_factory=dict)
    """Labels that no node has."""
    requests_gpus: bool = False
    """A pod requests GPUs."""
    served: bool = False
    """A pod requires the products of the annotation."""
    kept: bool = False
    """A pod does not require the products, because the user has chosen its nodes."""


def _products(job: MPIJob) -> list[str]:
    """The products that the job names; empty if there are too many or one is not a valid value of a label."""
    text = job.annotations.get(annotations.GPU_PRODUCT)
    if not text:
        return []
    products = list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    return [] if len(products) > MAX_GPU_PRODUCTS or any(map(names.label_value_problem, products)) else products


def _unserved(job: MPIJob, products: list[str], done: _Done) -> Iterator[Caution]:
    """The reason why the annotation has no effect; nothing if it has an effect."""
    value = job.annotations.get(annotations.GPU_PRODUCT)
    if value is None or done.served:
        return
    mention = annotations.mention(annotations.GPU_PRODUCT, value)
    if not products:
        yield Caution(f"{mention} has no effect: it must be the name of a product, or several names with commas")
    elif not done.requests_gpus:
        yield Caution(f"{mention} has no effect: no pod requests a GPU")
    elif done.kept:
        yield Caution(f"{mention} has no effect: the job's own choice of nodes stays")
    else:
        yield Caution(f"{mention} has no effect: no known node label has the product")


def _vendors(
    template: PodTemplate, settings: Settings, nodes: AllNodes | Unknown
) -> Iterator[tuple[Vendor, list[str]]]:
    """The vendors of the requested accelerators, each with these accelerators. For claims the list is empty."""
    has_request = False
    containers = (*template.containers, *template.init_containers)
    extended = extended_resources(containers)
    for vendor in settings.vendors if extended else ():
        resources = [name for name in extended if is_accelerator(name, vendor.resources)]
        if resources and any(accelerators(container, vendor.resources) for container in containers):
            has_request = True
            yield vendor, resources
    if not has_request and template.spec and template.spec.resource_claims and nodes is not UNKNOWN:
        present = [vendor for vendor in settings.vendors if vendor.present in nodes.labels]
        if len(present) == 1:
            yield present[0], []


def _strength(pods: _Pods, settings: Settings, nodes: AllNodes | Unknown) -> str:
    """`preferred`, `required`, `off`, or `absent` if the affinity is required but no node has the label."""
    present = pods.vendor.present
    if settings.node_affinity == "off" or not present:
        return "off"
    if nodes is UNKNOWN:
        return "preferred"
    strength = settings.node_affinity if pods.resources else "preferred"
    if present in nodes.labels:
        return strength
    return "absent" if strength == "required" else "off"


def _choose_nodes(patch: PatchBuilder, pods: _Pods, strength: str, products: list[str], done: _Done) -> None:
    vendor = pods.vendor
    required = []
    if products and pods.resources and vendor.product:
        required.append(Requirement(vendor.product, products))
        served = is_free(pods.template, vendor.product) or pods.template.affinity_requires(vendor.product, products)
        done.served |= served
        done.kept |= not served
    if strength == "required":
        required.append(Requirement(vendor.present))
    for key in require(patch, pods.spec, pods.template, required):
        done.notes[f"nodes with {key}" + (f" {' or '.join(products)}" if key == vendor.product else "")] = None
    if strength == "preferred" and prefer(patch, pods.spec, pods.template, Requirement(vendor.present)):
        done.notes[f"a preference for nodes with {vendor.present}"] = None
    if strength == "absent":
        done.absent[vendor.present] = None


def _tolerate(patch: PatchBuilder, pods: _Pods, nodes: AllNodes, done: _Done) -> None:
    own = (pods.template.spec and pods.template.spec.tolerations) or ()
    for resource in sorted(pods.resources):
        keys = {resource, *pods.vendor.taints}
        taints = (taint for taint in nodes.taints.get(resource, ()) if taint.key in keys)
        for taint in untolerated((taint for taint in taints if taint.effect == NO_SCHEDULE), own):
            if patch.append((*pods.spec, "tolerations"), _toleration(taint.key), key=None):
                done.notes[f"a toleration of {taint.key}"] = None
