"""The capability to lock memory. RDMA needs this capability if the node's limit of locked memory is low."""

from collections.abc import Iterator
from typing import Final

from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.injections import Caution
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder, template_path
from webhook.predict.job_pods import JobPods
from webhook.predict.pod_security import Level, labels
from webhook.predict.pod_security.pod import convert
from webhook.predict.scc.outcome import may_add

CAPABILITY: Final = "IPC_LOCK"


def add_ipc_lock(pods: JobPods, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    """Add the capability to the first container, or yield a Caution if it is forbidden or has no effect."""
    own = pods.template.containers[0].security_context
    capabilities = own.capabilities if own is not None else None
    if capabilities and {CAPABILITY, "ALL"} & {*(capabilities.add or ())} | {CAPABILITY} & {*(capabilities.drop or ())}:
        return
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    if not isinstance(namespace, Namespace):
        yield Caution(f"no {CAPABILITY}: the Pod Security level of the namespace is not known")
    elif (level := labels.read(namespace.labels)[0].enforce.level) is not Level.PRIVILEGED:
        yield Caution(f"no {CAPABILITY}: the namespace enforces {level}")
    elif not _maybe_root(pods):
        yield Caution(f"no {CAPABILITY}: it has no effect for a container that does not run as root")
    elif may_add(CAPABILITY, pods.role, convert(patch.get(template_path(pods.role))), ctx) is False:
        yield Caution(f"no {CAPABILITY}: no SCC that the pods may use accepts it")
    else:
        container = (*template_path(pods.role), "spec", "containers", 0)
        if patch.append((*container, "securityContext", "capabilities", "add"), CAPABILITY, key=None):
            yield f"gave the {pods.role.lower()} {CAPABILITY}"


def _maybe_root(pods: JobPods) -> bool:
    spec = pods.template.spec
    own, shared = pods.template.containers[0].security_context, spec.security_context if spec is not None else None
    contexts = [context for context in (own, shared) if context is not None]
    user = next((context.run_as_user for context in contexts if context.run_as_user is not None), 0)
    non_root = next((context.run_as_non_root for context in contexts if context.run_as_non_root is not None), False)
    return user == 0 and not non_root
