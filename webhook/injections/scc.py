"""On OpenShift, the pods get fields that their SCC requires but does not fill in.

OpenShift admits a pod under the first of its Security Context Constraints (SCC) that accepts it, and fills in fields
that this SCC requires. It does not fill in these two:

* `hostUsers: false`, if every SCC that the pods may use rejects the pods, but one of these SCCs accepts the pods in a
  user namespace. The SCC `restricted-v3`, which every ServiceAccount may use, then accepts users from 1000 to 65534,
  such as the user of upstream's images. The pods' volumes need a file system with id-mapped mounts, which NFS does not
  have;
* `NET_BIND_SERVICE` for the worker's first container, if the SCC drops all capabilities and allows this capability, and
  the container does not run as root. The sshd of upstream's images has this file capability, and the kernel starts no
  program whose file capabilities were all dropped (mpi-operator `build/base/Dockerfile`, `setcap`).

Nothing is injected in other clusters, or if the SCCs or the accounts that may use them are unknown.
"""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from webhook.api.mpijob import WORKER, MPIJob
from webhook.api.shape import ShapeError
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, equal, in_templates, in_worker
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings
from webhook.predict.pod_security.pod import Capabilities, convert
from webhook.predict.scc.outcome import may_add, outcome

BIND_SERVICE: Final = "NET_BIND_SERVICE"
_CAPABILITIES: Final = ("securityContext", "capabilities")

FORMS: Final = (
    *in_templates("spec", "hostUsers", holds=equal(False)),
    in_worker("spec", "containers", ITEM, *_CAPABILITIES, "add", holds=equal([BIND_SERVICE])),
)


@injection("scc", InjectionSettings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    for role, _, _ in job.replicas:
        path = template_path(role)
        try:
            template = convert(patch.get(path) or {})
        except ShapeError:
            continue  # the API server's schema rejects the job
        spec, admitted_as = template.spec, outcome(role, template, ctx)
        if spec is None or admitted_as is None:
            continue
        # The user namespace is first, because it determines the SCC of the pods.
        if admitted_as.rejections and spec.host_users is None:
            template = replace(template, spec=replace(spec, host_users=False))
            with_user_namespace = outcome(role, template, ctx)
            if with_user_namespace is None or with_user_namespace.rejections:
                continue
            if not patch.add((*path, "spec", "hostUsers"), False):
                continue
            admitted_as = with_user_namespace
            yield f"put the {role.lower()} into a user namespace for SCC {admitted_as.scc}"
        dropped = (admitted_as.first.capabilities or Capabilities()).drop or ()
        capabilities = (*path, "spec", "containers", 0, *_CAPABILITIES)
        loses = role == WORKER and "ALL" in dropped and patch.get(capabilities) is None
        if loses and may_add(BIND_SERVICE, role, template, ctx) and patch.add((*capabilities, "add"), [BIND_SERVICE]):
            yield f"gave the worker {BIND_SERVICE}: SCC {admitted_as.scc} drops it"
