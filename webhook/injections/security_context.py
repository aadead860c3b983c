"""If the Pod Security level `restricted` is enforced, containers get the fields that the level requires.

The level is enforced if the namespace's label `pod-security.kubernetes.io/enforce` is `restricted`, or if the rule
`pod-security` has `floor: restricted`, rejects jobs below it, and the job is not exempt from the rule. Then each
container and init container gets `runAsNonRoot: true`, `allowPrivilegeEscalation: false`, `capabilities.drop: ["ALL"]`
and `seccompProfile.type: RuntimeDefault`, if the enforced version requires the field and neither container nor pod sets
it. Values of the user stay, and the rule `pod-security` checks them. A privileged container gets no
`allowPrivilegeEscalation`, because the API server rejects the combination. A container with `runAsUser: 0` gets
nothing: it cannot start in this namespace, and injected fields would only hide the reason. Nothing is injected if the
level is not enforced, or on OpenShift if the pods' SCC fills in the fields.

The worker's first container keeps `NET_BIND_SERVICE`, the only capability that `restricted` allows. The sshd of
upstream's images has this file capability, and the kernel starts no program whose file capabilities were all dropped
(mpi-operator `build/base/Dockerfile`, `setcap`).

An image that runs as root does not start with these fields. The job then needs another image or user, and an
`sshAuthMountPath` in the home of the user. The rule `ssh-paths` reports a wrong path.
"""

import re
from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api.mpijob import WORKER, MPIJob
from webhook.api.shape import ShapeError
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, equal, in_templates
from webhook.kit.patch import PatchBuilder, Path, template_path
from webhook.kit.settings import InjectionSettings
from webhook.predict.pod_security import Level, LevelVersion, PodTemplate, Version, evaluate, labels, of_root
from webhook.predict.pod_security.pod import Capabilities, ContainerSecurityContext, convert
from webhook.predict.pod_security.subject import Subject
from webhook.predict.scc.outcome import outcome

# Injected values. The keys are paths below `securityContext`.
VALUES: Final[dict[str, object]] = {
    "allowPrivilegeEscalation": False,
    "capabilities.drop": ["ALL"],
    "runAsNonRoot": True,
    "seccompProfile.type": "RuntimeDefault",
}
KEPT: Final = ["NET_BIND_SERVICE"]
_CONTEXT: Final = ".securityContext."
_TOKEN = re.compile(r"[^.\[\]]+")


class Settings(InjectionSettings):
    """Whether workers keep a capability."""

    net_bind_service: bool = Field(
        True, description="Whether the worker's first container keeps NET_BIND_SERVICE, for its sshd."
    )


FORMS: Final = tuple(
    form
    for kind in ("containers", "initContainers")
    for field, value in (*VALUES.items(), ("capabilities.add", KEPT))
    for form in in_templates("spec", kind, ITEM, "securityContext", *field.split("."), holds=equal(value))
)


@injection("security-context", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    enforced = labels.read(namespace.labels if isinstance(namespace, Namespace) else {})[0].enforce
    if enforced.level is not Level.RESTRICTED:
        if ctx.admitted.restricted_since is None:
            return
        enforced = LevelVersion(Level.RESTRICTED, Version(ctx.admitted.restricted_since))
    added = {}
    for role, _, _ in job.replicas:
        template_at: Path = template_path(role)
        try:
            template = convert(patch.get(template_at) or {})
        except ShapeError:
            continue  # the API server's schema rejects the job
        if of_scc := outcome(role, template, ctx):
            template = of_scc.filled or template
        for path, field in _missing(template, enforced.version):
            if patch.add((*template_at, *path), VALUES[field]):
                added[field.partition(".")[0]] = True
                mpi_container = path[:3] == ("spec", "containers", 0)
                if field == "capabilities.drop" and role == WORKER and mpi_container and settings.net_bind_service:
                    patch.add((*template_at, *path[:-1], "add"), KEPT)
    if added:
        yield f"added {', '.join(added)} for {enforced}"


def _missing(template: PodTemplate, version: Version) -> Iterator[tuple[Path, str]]:
    """(path in the template, key of VALUES) of each missing field that the level `restricted` requires at `version`."""
    subject = Subject(template)
    roots = {place.path for place in of_root.places(subject)}
    # The API server rejects a privileged container with `allowPrivilegeEscalation: false`.
    excluded = {("allowPrivilegeEscalation", place.path) for place in subject.containers if _escalates(place.security)}
    for result in evaluate(Level.RESTRICTED, version, template):
        for path in result.paths:
            container, _, field = path.partition(_CONTEXT)
            if field not in VALUES or container in roots or (field, container) in excluded:
                continue
            if field == "runAsNonRoot" or not subject.for_windows:
                yield tuple(int(token) if token.isdigit() else token for token in _TOKEN.findall(path)), field


def _escalates(security: ContainerSecurityContext) -> bool:
    capabilities = security.capabilities or Capabilities()
    return bool(security.privileged) or "CAP_SYS_ADMIN" in (capabilities.add or ())
