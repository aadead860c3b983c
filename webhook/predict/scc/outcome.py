"""The SCC that the pods of a job get, and the values that this SCC sets."""

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
"""The path and value of the rejection of an unset `hostUsers`. The injection `scc` sets this field."""
DEFAULT: Final = "restricted-v2"
# OpenShift grants these SCCs, if they exist, to all authenticated users.
_DEFAULTS: Final = frozenset({DEFAULT, "restricted-v3"})
# The fields of restricted-v2 that set values in pods. They are used if the SCCs are unknown.
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
# The accounts that create the pods.
_CREATORS: Final = {
    WORKER: service_account("mpi-operator", "mpi-operator"),
    LAUNCHER: service_account("kube-system", "job-controller"),
}


class Outcome(msgspec.Struct, frozen=True):
    """The result of OpenShift's admission for the pods of one role."""

    scc: str = ""
    """The SCC that the pods get. If no SCC accepts the pods, the SCC with the fewest rejections.

    Empty if the pods may use no SCC.
    """
    filled: PodTemplate | None = None
    """The template with the values that the SCC sets; None without an SCC."""
    rejections: tuple[Rejection, ...] = ()
    wider: str = ""
    """The most restrictive SCC that would accept the pods if they were allowed to use it; empty if there is none."""
    assumed: bool = False
    """True if it is unknown which SCCs the pods may use.

    OpenShift's default SCCs and the SCCs that list the pods' accounts are then assumed.
    """

    @property
    def first(self) -> ContainerSecurityContext:
        """The security context of the first container."""
        containers = self.filled.spec.containers if self.filled and self.filled.spec else None
        return (containers[0].security_context if containers else None) or ContainerSecurityContext()


def account_of(template: PodTemplate, namespace: str) -> str:
    spec = template.spec or PodSpec()
    return service_account(namespace, spec.service_account_name or spec.service_account or "default")


def outcomes(job: MPIJob, ctx: Context) -> Mapping[str, Outcome]:
    """The outcomes by role. Roles with an unknown outcome are left out. Without OpenShift, all are unknown."""
    return ctx.once(_outcomes, job)


def _outcomes(_: MPIJob, ctx: Context) -> Mapping[str, Outcome]:
    if _reserved(ctx) is None:
        return {}
    try:
        by_role = {role: outcome(role, template, ctx, assume=True) for role, _, template in templates(ctx.document)}
    except ShapeError:
        return {}
    return {role: result for role, result in by_role.items() if result is not None}


def outcome(role: str, template: PodTemplate, ctx: Context, *, assume: bool = False) -> Outcome | None:
    """None if the outcome is unknown. With `assume`, unknown permissions are assumed (`Outcome.assumed`)."""
    reserved = _reserved(ctx)
    if (
        reserved is None
        or Subject(template).for_windows
        or (stored := ctx.view.all(SECURITY_CONTEXT_CONSTRAINTS)) is UNKNOWN
    ):
        return None
    accounts = account_of(template, ctx.namespace), _CREATORS[role]
    # All permissions are looked up before any is used, so that all unknown permissions are read together.
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
        usable |= _DEFAULTS | {required or ""} | {scc.name for scc in stored.values() if lists(scc, *accounts)}
    candidates = [scc for scc in stored.values() if required in {None, scc.name}]
    rejecting = []
    for scc in in_order(scc for scc in candidates if scc.name in usable):
        result = _under(in_namespace(scc, reserved), template)
        # An unset `hostUsers` is ignored here. Once the permissions are known, the injection `scc` sets the field.
        if all(assumed and rejection[:2] == OPEN for rejection in result.rejections):
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
    """The number of different rejections, except those of `hostUsers`, the field that is easiest to change."""
    others = (rejection for rejection in rejecting.rejections if rejection.path != OPEN[0])
    return len({(path.rpartition(".")[2], str(value), detail) for path, value, detail in others})


def filled_in(template: PodTemplate, assigned: Outcome | None, ctx: Context) -> PodTemplate:
    """The template with the values of its SCC, or of DEFAULT if its SCC is unknown."""
    if assigned is not None and assigned.filled is not None:
        return assigned.filled
    reserved, stored = _reserved(ctx), ctx.view.all(SECURITY_CONTEXT_CONSTRAINTS)
    if reserved is None or Subject(template).for_windows or ctx.view.not_served(SECURITY_CONTEXT_CONSTRAINTS):
        return template
    scc = _IF_UNREADABLE if stored is UNKNOWN else stored.get(DEFAULT)
    return template if scc is None else fill(in_namespace(scc, reserved), template)


def may_add(capability: str, role: str, template: PodTemplate, ctx: Context) -> bool | None:
    """True if an SCC accepts the pods with this capability in their first container; None if unknown."""
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
