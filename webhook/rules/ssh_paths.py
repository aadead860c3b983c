"""Users, `sshAuthMountPath`, `fsGroup` and capabilities match, so that ssh finds a key that it accepts.

The operator mounts the key in the first containers at `sshAuthMountPath`, owned by root. Its mode is 0600 if the path
is exactly `/root/.ssh`, else 0644; an `fsGroup` changes 0600 to 0640 (mpi-operator `setupSSHOnPod`, and mpi-operator
issue 429). ssh looks for the key in the user's home according to /etc/passwd. ssh rejects a key that belongs to the
user of ssh and that other users may read. The requirements are:

* root needs `/root/.ssh` and no `fsGroup`;
* any other user needs the `.ssh` of its home, and an sshd whose configuration and host keys the user can read. This
  sshd accepts only its own user, so launcher and workers must run as the same user;
* sshd of root needs the capabilities SETGID, SETUID and SYS_CHROOT. sshd of another user needs NET_BIND_SERVICE in
  upstream's images (mpi-operator `build/base/Dockerfile`). CRI-O gives no SYS_CHROOT (cri-o
  `internal/config/capabilities/capabilities_linux.go`): sshd logs `chroot("/run/sshd"): Operation not permitted`, and
  ssh reports "Connection reset" (mpi-operator issue 642). A missing SYS_CHROOT is a warning if all nodes run CRI-O. No
  injection adds SYS_CHROOT, because the level `restricted` and most SCCs of OpenShift reject it;
* `sshAuthMountPath` is a folder, not a file such as `/root/.ssh/id_rsa`;
* sshd needs `StrictModes no` in its configuration, because every user may read the folder of the keys.

Open MPI does not start as root without `--allow-run-as-root`, or both `OMPI_ALLOW_RUN_AS_ROOT` and
`OMPI_ALLOW_RUN_AS_ROOT_CONFIRM` with the value "1". Some images allow root, such as Horovod's. These launchers cause a
warning:

* a launcher that runs as root or has upstream's image, and does not allow root;
* a launcher that allows root, although the key is in another user's home;
* a launcher that runs mpirun as another user, for example by `gosu USER`, although the key is for root.

The level `restricted` forbids containers that run as root. On OpenShift the SCC chooses the user if the job does not,
usually a user without a home (`openshift.io/sa.scc.uid-range`). In both cases a job gets a warning if its key is for
root and it runs sshd or starts mpirun as root. If the SCC chooses the user, upstream's image causes a warning too,
because the image does not have this user.

A job that certainly cannot work is rejected; other faults are warnings. If neither the container nor the pod names a
user, the user is unknown. The path `/root/.ssh` may be the API server's default instead of the user's choice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import dirname, normpath
from typing import Final

import msgspec

from webhook.api import mpirun, sshd
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.mpirun_options import OPEN_MPI
from webhook.api.pod import Capabilities, Container, PodSecurityContext, PodTemplate, SecurityContext
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.nodes import all_nodes
from webhook.predict.pod_security import Level, labels
from webhook.predict.pod_security.pod import Capabilities as FilledCapabilities
from webhook.predict.pod_security.pod import ContainerSecurityContext as FilledContainer
from webhook.predict.pod_security.pod import PodSecurityContext as FilledPod
from webhook.predict.scc.outcome import Outcome, outcomes
from webhook.rules import Violation, rule, shortened

FIELD: Final = "spec.sshAuthMountPath"
OF_ROOT: Final = "/root/.ssh"
ROOTS: Final = "Set it to /root/.ssh, or set runAsUser."
HOME: Final = "Set it to /home/mpiuser/.ssh, or to .ssh in the home of the user."
# sshd of root changes its root directory, then becomes the user who logs in (OpenSSH `sshd-session.c`).
AS_ROOT: Final = ("SETGID", "SETUID", "SYS_CHROOT")
NOT_OF_CRI_O: Final = "SYS_CHROOT"
CAPABILITIES: Final = "containers[0].securityContext.capabilities"
AS_OTHERS: Final = "NET_BIND_SERVICE"
ALLOWED: Final = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
# mpi-operator `build/base/Dockerfile`, `build/base/openmpi.Dockerfile`, `examples/v2beta1/pi/Dockerfile`.
_UPSTREAM: Final = re.compile(r"(?:docker\.io/)?mpioperator/(?:base|mpi-pi|openmpi)(?:[:@].*)?")
OF_IMAGE: Final = 1000
# Alternatives with a fixed first character are much faster than with \b before them.
_ANOTHER_USER: Final = re.compile(
    r"(?:su(?<!\wsu)|sudo(?<!\wsudo)|gosu(?<!\wgosu)|runuser(?<!\wrunuser)|setpriv(?<!\wsetpriv))\b(?:(?:\s+-\w*)*\s+(?!root\b|mpi(?:run|exec)\b)([a-z_][\w-]*)"
    r"\s+(?:-c\s+['\"]?[^'\"]{0,200}?|--\s+)?mpi(?:run|exec)\b)?"
)
# Signs that the launcher copies the key to another folder, or passes the key to ssh.
_OWN_KEY: Final = re.compile(r"ssh|IdentityFile|(?:^|\s)-i\s")


class _Side(msgspec.Struct, frozen=True):
    """The MPI container of a role. `user` is None if the image decides."""

    role: str
    container: Container
    user: int | None
    of_container: bool
    """The container names its user."""
    fs_group: int | None
    other_than_root: bool
    privileged: bool
    capabilities: Capabilities | FilledCapabilities | None
    scc: str = ""
    """The SCC that chose the user, in words; empty if the job names a user."""

    @property
    def pod(self) -> str:
        return f"{replica_path(self.role)}.template.spec"


@rule("ssh-paths", RuleSettings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
    of_scc = outcomes(job, ctx)
    sides = {
        role: _side(replica.template, role, of_scc.get(role))
        for role, _, replica in job.replicas
        if replica.template.containers
    }
    worker, launcher = sides.get(WORKER), sides.get(LAUNCHER)
    keeps_root_out = _keeps_root_out(ctx)
    mount_path = job.spec.ssh_auth_mount_path or OF_ROOT
    if mount_path.rpartition("/")[2] in {"authorized_keys", "id_rsa", "id_rsa.pub"}:
        fault = f'"{shortened(mount_path)}" is a file, not the folder of the keys'
        mount_path = dirname(mount_path)
        yield Violation(FIELD, fault, fix=f"Set it to {mount_path}.", advisory=True)
    of_root = normpath(mount_path) == OF_ROOT
    if launcher is not None and not launcher.other_than_root and not keeps_root_out:
        yield from _started_as_root(job, launcher, of_root=of_root or not mount_path.startswith("/"))
    if not mount_path.startswith("/"):
        fault = f'"{shortened(mount_path)}" does not start with /: ssh would not find the keys'
        yield Violation(FIELD, fault, "Set it to /root/.ssh, or /home/USER/.ssh where the job runs as another user.")
        return
    starts_sshd = worker is not None and sshd.starts(worker.container)
    if of_root and (because := _nothing_is_root(sides, of_scc, keeps_root_out=keeps_root_out)):
        if starts_sshd or (launcher is not None and _wants_root(launcher.container)):
            yield _for_root_alone(mount_path, launcher, because)
        return
    if worker is None or not starts_sshd:
        return
    if other := [side for side in sides.values() if side.scc and _UPSTREAM.fullmatch(side.container.image or "")]:
        fault = f"user {other[0].user} ({other[0].scc}) is not in the image"
        yield Violation(FIELD, fault, fix=f"Set runAsUser to {OF_IMAGE}.", advisory=True)
        return
    if of_root:
        yield from _key_of_root(mount_path, list(sides.values()), keeps_root_out=keeps_root_out)
    if launcher is not None:
        if launcher.user != 0 or not keeps_root_out:  # otherwise the rule `pod-security` rejects root
            yield from _client(mount_path, launcher)
        yield from _same_user(launcher, worker)
    yield from _server(worker, ctx, root_may_run=not keeps_root_out)


def _side(template: PodTemplate, role: str, of_scc: Outcome | None) -> _Side:
    container = template.containers[0]
    of_pod: PodSecurityContext | FilledPod | None = template.spec.security_context if template.spec else None
    own: SecurityContext | FilledContainer | None = container.security_context
    capabilities: Capabilities | FilledCapabilities | None = own.capabilities if own else None
    chosen_by = ""
    if of_scc is not None and of_scc.filled and of_scc.filled.spec and not of_scc.rejections:
        of_pod, own = of_scc.filled.spec.security_context, of_scc.first
        if not of_scc.assumed:  # otherwise the injection `scc` may be missing here
            capabilities = own.capabilities
        if template.user is None:
            chosen_by = f"{'the default ' if of_scc.assumed else ''}SCC {of_scc.scc}"
    of_pod, own = of_pod or PodSecurityContext(), own or SecurityContext()
    user = of_pod.run_as_user if own.run_as_user is None else own.run_as_user
    non_root = of_pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root
    return _Side(
        role,
        container,
        user,
        of_container=own.run_as_user is not None,
        fs_group=of_pod.fs_group,
        other_than_root=bool(non_root) if user is None else user != 0,
        privileged=bool(own.privileged),
        capabilities=capabilities,
        scc=chosen_by if user is not None else "",
    )


def _nothing_is_root(sides: Mapping[str, _Side], of_scc: Mapping[str, Outcome], *, keeps_root_out: bool) -> str:
    """Why all containers run as another user, which the job does not name; empty if that is not certain."""
    for role, side in sides.items():
        rejected = role in of_scc and of_scc[role].rejections  # the user is unknown
        if not (side.other_than_root or rejected) or not (side.user is None or side.scc):
            return ""
    chosen = (f"{side.scc} runs the pods as user {side.user}" for side in sides.values() if side.scc)
    return next(chosen, "this namespace starts nothing as root" if keeps_root_out else "")


def _keeps_root_out(ctx: Context) -> bool:
    """Whether the namespace enforces a level that forbids root."""
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    return isinstance(namespace, Namespace) and labels.read(namespace.labels)[0].enforce.level is Level.RESTRICTED


def _for_root_alone(mount_path: str, launcher: _Side | None, because: str) -> Violation:
    """One violation, although several fields must change."""
    fix = "Use an image with its own user: set sshAuthMountPath to the user's .ssh, and use the user's sshd_config."
    if launcher is not None and _wants_root(launcher.container):
        fault = f"runs mpirun as root, but {because}"
        return Violation(f"{launcher.pod}.containers[0]", fault, fix=fix, advisory=True)
    fault = f'"{mount_path[:100]}" is for root, but {because}'
    return Violation(FIELD, fault, fix=fix, advisory=True)


def _wants_root(container: Container) -> bool:
    return any("allow-run-as-root" in word for word in container.argv) or any(
        variable.name == "OMPI_ALLOW_RUN_AS_ROOT" for variable in container.env or ()
    )


def _started_as_root(job: MPIJob, launcher: _Side, *, of_root: bool) -> Iterator[Violation]:
    calls = [call for call in job.mpirun_calls if call.program != "horovodrun" and call.options is not None]
    dialects = [mpirun.dialect(call.program, job.spec.mpi_implementation) for call in calls]
    if not calls:
        return
    container, text = launcher.container, sshd.text(launcher.container)

    def own_key() -> bool:
        values = {variable.name: variable.value or "" for variable in container.env or ()}
        return any(map(_OWN_KEY.search, (text, *values.values())))

    if user := _another_user(text):
        if of_root and user[1] and not own_key():
            who = user[1][:20]
            fault, fix = f"{who} runs mpirun, and the key is for root", f"Set it to .ssh in the home of {who}."
            yield Violation(FIELD, fault, fix=fix, advisory=True)
    elif dialects.count(OPEN_MPI) < len(dialects):
        return
    elif "allow-run-as-root" in text:
        if launcher.user is None and not of_root and not own_key():
            fault = "mpirun may run as root, and root has no key"
            yield Violation(FIELD, fault, fix=ROOTS, advisory=True)
    elif not container.env_from and "ALLOW_RUN_AS_ROOT" not in text:
        image = container.image or ""
        is_root = _UPSTREAM.fullmatch(image) or (launcher.user == 0 and "horovod" not in image)
        given = {variable.name: variable.value for variable in container.env or () if variable.name in ALLOWED}
        wrong = [name for name in ALLOWED if given.get(name, "") not in {"1", None}] if given or is_root else ()
        if wrong:
            fix = f'Set {" and ".join(wrong)} to "1".' if given else "Add --allow-run-as-root."
            yield Violation(replica_path(LAUNCHER), "mpirun does not start as root", fix=fix, advisory=True)


def _another_user(text: str) -> re.Match[str] | None:
    may_match = "su" in text or "runuser" in text or "setpriv" in text
    return _ANOTHER_USER.search(text) if may_match else None


def _key_of_root(mount_path: str, sides: list[_Side], *, keeps_root_out: bool) -> Iterator[Violation]:
    faults: dict[tuple[str, bool], list[str]] = {}
    for side in sides:
        if not side.other_than_root:
            continue
        unreadable = side.user is not None and mount_path == OF_ROOT and side.fs_group is None
        if side.user is None:
            because = "this namespace starts nothing as root" if keeps_root_out else "runAsNonRoot is set"
            fault = f"is for root, and {because}"
        elif unreadable:
            fault = f"cannot be read by user {side.user}, only by root"
        else:
            fault = f"is not for user {side.user}: other users can rarely read /root"
        faults.setdefault((fault, not unreadable), []).append(side.role)
    for (fault, advisory), roles in faults.items():
        message = f'"{mount_path[:100]}" {fault} ({" and ".join(roles)})'
        yield Violation(FIELD, message, fix=HOME, advisory=advisory)


def _client(mount_path: str, launcher: _Side) -> Iterator[Violation]:
    if launcher.user == 0 and mount_path != OF_ROOT and not _another_user(sshd.text(launcher.container)):
        # If the path is not in root's home, the violation is a warning, because a script may copy the key.
        message = f'the launcher runs as root: ssh then takes no key from "{mount_path[:100]}"'
        fix = "Set it to exactly /root/.ssh, or run as the user in whose home it is."
        yield Violation(FIELD, message, fix=fix, advisory=normpath(mount_path) != OF_ROOT)
    elif mount_path == OF_ROOT and launcher.fs_group is not None and not launcher.other_than_root:
        who = "root" if launcher.user == 0 else "the image's user, if that is root,"
        yield Violation(
            f"{launcher.pod}.securityContext.fsGroup",
            f"gives a group the key of {who} and ssh then rejects it",
            fix="Remove fsGroup, or run as another user with sshAuthMountPath in its home.",
            advisory=launcher.user is None,
        )


def _same_user(launcher: _Side, worker: _Side) -> Iterator[Violation]:
    if worker.user and launcher.user is not None and worker.user != launcher.user:
        yield Violation(
            f"{worker.pod}.{'containers[0].' if worker.of_container else ''}securityContext.runAsUser",
            f"sshd of user {worker.user} accepts only that user, the launcher is {launcher.user or 'root'}",
            fix="Run both as the same user.",
            advisory=True,
        )


def _server(worker: _Side, ctx: Context, *, root_may_run: bool) -> Iterator[Violation]:
    argv = worker.container.argv
    if worker.other_than_root and (not argv or (argv[0].endswith("/sshd") and "-f" not in argv)):
        yield Violation(
            f"{worker.pod}.containers[0].command",
            "names no configuration, so sshd reads root's" if argv else "is missing, so the sshd of root starts",
            fix="Start sshd with a configuration of the user: [/usr/sbin/sshd, -De, -f, /home/mpiuser/.sshd_config].",
            advisory=True,
        )
    capabilities = worker.capabilities or Capabilities()
    added, dropped = _names(capabilities.add), _names(capabilities.drop)
    needed = (AS_OTHERS,) if worker.other_than_root else AS_ROOT
    # By default the runtime grants all capabilities that are needed.
    missing = [name for name in needed if {name, "ALL"} & dropped and not {name, "ALL"} & added] if dropped else ()
    if missing and worker.other_than_root:
        fault = f"has no {AS_OTHERS}, without which upstream's sshd cannot start"
        fix = f"Add {AS_OTHERS} to capabilities.add: restricted allows it."
        yield Violation(f"{worker.pod}.{CAPABILITIES}.add", fault, fix, advisory=True)
    elif missing and root_may_run:
        fault = f"drops what sshd of root needs: {', '.join(missing)}"
        fix = f"Add {', '.join(missing)} to capabilities.add, or run sshd as another user."
        yield Violation(f"{worker.pod}.{CAPABILITIES}.drop", fault, fix=fix, advisory=worker.user is None)
    elif root_may_run and not (worker.other_than_root or worker.privileged or {NOT_OF_CRI_O, "ALL"} & added):
        nodes = all_nodes(ctx.view)
        if nodes is UNKNOWN or not nodes.on_cri_o:
            return
        fault = f"has no {NOT_OF_CRI_O}: sshd needs it as root, CRI-O does not give it"
        fix = "Add it, or run sshd as another user."
        yield Violation(f"{worker.pod}.{CAPABILITIES}.add", fault, fix, advisory=True)


def _names(capabilities: Sequence[str] | None) -> set[str]:
    """The names without the prefix CAP_."""
    return {name.upper().removeprefix("CAP_") for name in capabilities or ()}
