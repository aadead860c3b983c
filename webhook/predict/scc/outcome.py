"""The SCC that the pods of a job get, and the values that it sets."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob
from webhook.api.shape import ShapeError
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.sccs import SECURITY_CONTEXT_CONSTRAINTS, SecurityContextConstraints
from webhook.cluster.scc_grants import SCC_GRANTS, SccGrants, lists, service_account
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.predict.pod_security.pod import Capabilities, ContainerSecurityContext, PodSpec, PodTemplate, templates
from webhook.predict.pod_security.subject import Subject
from webhook.predict.scc.constraints import Ranges, in_namespace, in_order, permissiveness, ranges
from webhook.predict.scc.matching import Rejection, fill, rejections

REQUIRED: Final = "openshift.io/required-scc"
OPEN: Final = ("spec.hostUsers", None)
"""The field and value of the rejection of an unset `hostUsers`. The injection `scc` sets this field."""
DEFAULT: Final = "restricted-v2"
_DEFAULTS: Final = frozenset({DEFAULT, "restricted-v3"})
"""OpenShift grants these SCCs to all authenticated users, if they exist."""
_IF_UNREADABLE: Final = msgspec.convert(
    {
        "metadata": {"name": DEFAULT},
        "allowPrivilegeEscalation": False,
        "requiredDropCapabilities": ["ALL"],
        "seccompProfiles": ["runtime/default"],
        "runAsUser": {"type": "MustRunAsRange"},
        "fsGroup": {"type": "MustRunAs"},
        "seLinuxContext": {"type": "MustRunAs"},
    },
    SecurityContextConstraints,
)
"""What OpenShift's restricted-v2 fills in."""
# The users that create pods: the operator for workers, the Job controller for the launcher.
_CREATORS: Final = {
    WORKER: service_account("mpi-operator", "mpi-operator"),
    LAUNCHER: service_account("kube-system", "job-controller"),
}


class Outcome(msgspec.Struct, frozen=True):
    """The result of OpenShift's admission for the pods of one role."""

    scc: str = ""
    """The SCC of the pods. If none accepts them, the SCC with the fewest rejections; empty if they may use none."""
    filled: PodTemplate | None = None
    """The template with the values that the SCC sets; None without an SCC."""
    rejections: tuple[Rejection, ...] = ()
    """Why the SCC rejects the pods; empty if it accepts them."""
    wider: str = ""
    """The most restrictive SCC that would accept the pods but that they may not use; empty if there is none."""
    assumed: bool = False
    """Whether it is unknown which SCCs the pods may use. Those that all accounts may use are assumed."""

    @property
    def first(self) -> ContainerSecurityContext:
        """The first container's security context after admission."""
        containers = self.filled.spec.containers if self.filled and self.filled.spec else None
        return (containers[0].security_context if containers else None) or ContainerSecurityContext()


def account_of(template: PodTemplate, namespace: str) -> str:
    """The user name of the pods' ServiceAccount."""
    spec = template.spec or PodSpec()
    return service_account(namespace, spec.service_account_name or spec.service_account or "default")


def outcomes(job: MPIJob, ctx: Context) -> Mapping[str, Outcome]:
    """The outcome by role. A role is left out if its outcome is unknown, as on clusters other than OpenShift."""
    return ctx.once(_outcomes, job)


def _outcomes(_: MPIJob, ctx: Context) -> Mapping[str, Outcome]:
    if _reserved(ctx) is None:
        return {}
    try:
        by_role = {role: outcome(role, template, ctx, assume=True) for role, _, template in templates(ctx.document)}
    except ShapeError:
        return {}
    return {role: each for role, each in by_role.items() if each is not None}


def outcome(role: str, template: PodTemplate, ctx: Context, *, assume: bool = False) -> Outcome | None:
    """None if it is unknown. With `assume`, unknown permissions are those that all accounts have."""
    reserved = _reserved(ctx)
    if (
        reserved is None
        or Subject(template).for_windows
        or (stored := ctx.view.all(SECURITY_CONTEXT_CONSTRAINTS)) is UNKNOWN
    ):
        return None
    accounts = account_of(template, ctx.namespace), _CREATORS[role]
    # All permissions are looked up before any is used, so that the missing ones are requested together.
    granted = [
        grants.constraints
        for account in accounts
        if isinstance(grants := ctx.view.get(SCC_GRANTS, (ctx.namespace, account)), SccGrants)
    ]
    required = template.annotations.get(REQUIRED)
    usable = frozenset[str]().union(*granted)
    if assumed := len(granted) < len(accounts):
        if not assume:
            return None
        usable |= _DEFAULTS | {required or ""} | {each.name for each in stored.values() if lists(each, *accounts)}
    candidates = [scc for scc in stored.values() if required in {None, scc.name}]
    rejecting = []
    for scc in in_order(scc for scc in candidates if scc.name in usable):
        result = _under(in_namespace(scc, reserved), template)
        # The injection `scc` sets the field OPEN if the permissions are known.
        if all(assumed and each[:2] == OPEN for each in result.rejections):
            return replace(result, rejections=(), assumed=assumed)
        rejecting.append(result)
    if not rejecting:
        detail = "the pods may not use this SCC, or it does not exist"
        missing = Rejection(f"metadata.annotations[{REQUIRED}]", required, detail)
        return Outcome(rejections=(missing,), assumed=assumed) if required else None
    others = sorted((scc for scc in candidates if scc.name not in usable), key=permissiveness)
    wider = (scc.name for scc in others if not _under(in_namespace(scc, reserved), template).rejections)
    return replace(min(rejecting, key=_objections), wider=next(wider, ""), assumed=assumed)


def _objections(rejecting: Outcome) -> int:
    """The number of different objections, except to `hostUsers`, which is the easiest to change."""
    others = [each for each in rejecting.rejections if each.path != OPEN[0]]
    return len({(each.path.rpartition(".")[2], str(each.value), each.detail) for each in others})


def filled_in(template: PodTemplate, assigned: Outcome | None, ctx: Context) -> PodTemplate:
    """The template with the values of its SCC; if that SCC is unknown, with the values of DEFAULT."""
    if assigned is not None and assigned.filled is not None:
        return assigned.filled
    reserved, stored = _reserved(ctx), ctx.view.all(SECURITY_CONTEXT_CONSTRAINTS)
    if reserved is None or Subject(template).for_windows or ctx.view.not_served(SECURITY_CONTEXT_CONSTRAINTS):
        return template
    scc = _IF_UNREADABLE if stored is UNKNOWN else stored.get(DEFAULT)
    return template if scc is None else fill(in_namespace(scc, reserved), template)


def may_add(capability: str, role: str, template: PodTemplate, ctx: Context) -> bool | None:
    """Whether an SCC accepts the pods with this capability in their first container; None if unknown."""
    spec = template.spec
    if spec is None or not spec.containers:
        return None
    first, *others = spec.containers
    own = first.security_context or ContainerSecurityContext()
    capabilities = own.capabilities or Capabilities()
    more = replace(own, capabilities=replace(capabilities, add=[*(capabilities.add or ()), capability]))
    containers = [replace(first, security_context=more), *others]
    result = outcome(role, replace(template, spec=replace(spec, containers=containers)), ctx)
    return None if result is None else not result.rejections


def _reserved(ctx: Context) -> Ranges | None:
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    return ranges(namespace.annotations) if isinstance(namespace, Namespace) else None


def _under(scc: SecurityContextConstraints, template: PodTemplate) -> Outcome:
    filled = fill(scc, template)
    return Outcome(scc.name, filled, tuple(rejections(scc, filled)))
