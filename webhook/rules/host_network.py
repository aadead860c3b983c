"""Workers in the host network run sshd on a port that the node's sshd does not use.

With `hostNetwork: true` the ports of the pod are ports of the node, and nearly every node runs an sshd on port 22. The
worker's sshd then cannot start, or the launcher connects to the node's sshd, which has other keys (mpi-operator issue
593).

A job gets a warning if the port of its sshd is 22 or is not in the manifest, and no volume is mounted over sshd's
configuration. The warning may be wrong, because the image may set another port. The injection `host-network` keeps two
workers of a job from sharing a node.
"""

import re
from collections.abc import Iterator
from typing import Final

from webhook.api import sshd
from webhook.api.mpijob import WORKER, MPIJob, replica_path
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import WarningRuleSettings
from webhook.rules import Violation, rule

NODES_PORT: Final = 22
_CONFIGURATION: Final = re.compile(r"/etc(?:/ssh(?:/sshd_config(?:\.d(?:/.*)?)?)?)?/?")


@rule("host-network", WarningRuleSettings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: WarningRuleSettings, ctx: Context) -> Iterator[Violation]:
    template = job.worker.template if job.worker else None
    pod = template.spec if template else None
    if template is None or pod is None or not pod.host_network or sshd.port(job, NODES_PORT) != NODES_PORT:
        return
    if any(_CONFIGURATION.fullmatch(mount.mount_path) for mount in template.containers[0].volume_mounts or ()):
        return
    path = f"{replica_path(WORKER)}.template.spec.hostNetwork"
    fix = "Set another Port in the image's sshd_config and ssh_config, or remove hostNetwork."
    yield Violation(path, "the node's sshd uses port 22 already", fix, follows=path)
