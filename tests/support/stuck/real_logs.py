"""Records logs of failed jobs with the real Open MPI 4 and 5, MPICH, Intel MPI and OpenSSH on this machine.

`python -m tests.support.stuck.real_logs` writes the logs into LOGS. It needs root, because each simulated pod
consists of Linux namespaces.
"""

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

from tests.controlplane.process import ControlPlaneError, Program
from tests.support.installation.sshd import Sshd, find_sshd
from tests.support.mpi import pods
from tests.support.mpi.releases import installed

LOGS = Path(__file__).with_name("logs")
JOB = "train"
HOSTS = [f"{JOB}-worker-{number}.{JOB}.team-a.svc" for number in (0, 1)]
OPEN_MPI = ("openmpi-4", "openmpi-5")
HYDRA = ("mpich", "intel")
ALL = (*OPEN_MPI, *HYDRA)
ON_WORKER_1 = 'case "$(hostname)" in *-1) {};; esac; sleep 5'
LOSS_AFTER = 8  # seconds until worker 1 is lost; by then, the ranks have started
SSHD = "/usr/sbin/sshd -De"


@dataclass(frozen=True)
class Scenario:
    """A failure, and the id of the cause that `why` finds in the log."""

    command: str
    """The arguments of mpirun in the launcher."""
    cause: str
    releases: tuple[str, ...] = ALL
    hostfile: str | None = None
    slots: int = 1
    before: str = ""
    """A script that runs first in the launcher's pod."""
    workers: str = ""
    """A script that runs before sshd in each worker's pod."""
    sshd: str = SSHD
    worker_is_lost: bool = False
    """Whether all processes of worker 1 are killed while the ranks run."""
    root: bool = True
    """Whether mpirun may run as root."""
    of_worker: bool = False
    """Whether the log is from the workers instead of the launcher."""
    of_intel: str = ""
    """The cause in Intel MPI's log, which does not mention ssh."""
    of_hydra: str = ""
    """The cause in the logs of MPICH and Intel MPI, which also kill the other ranks."""

    def cause_of(self, release: str) -> str:
        return (
            (self.of_intel if release == "intel" else "") or (self.of_hydra if release in HYDRA else "") or self.cause
        )


def _rank(script: str) -> str:
    return f"-n 2 sh -c '{ON_WORKER_1.format(script)}'"


def _mpi(script: str, *, ranks: int = 2, by: str = "os.uname()[1][-1] == '1'") -> str:
    """Ranks that join MPI. The rank on worker 1 then runs `script`."""
    library = "ctypes.CDLL('{library}', ctypes.RTLD_GLOBAL)"
    start = f"import ctypes, os, time; mpi = {library}; mpi.MPI_Init(None, None)"
    return _python(f"{start}; {by} and {script}; time.sleep(20)", ranks)


def _one_of_six(script: str) -> str:
    """Three ranks on each worker. The second rank of worker 1 runs `script`, and Hydra kills the other ranks."""
    return _mpi(f"(time.sleep(1), {script})", ranks=6, by="os.environ['PMI_RANK'] == '4'")


def _python(script: str, ranks: int = 2) -> str:
    return f'-n {ranks} {sys.executable} -c "{script}"'


_HOSTNAME = "-n 2 hostname"
_HANDLED = """
import os, time, traceback
try:
    open('/data/cache.bin')
except OSError:
    traceback.print_exc()
print('no cache, epoch 1', flush=True)
time.sleep(1)
os.uname()[1][-1] == '1' and os.kill(os.getpid(), 11)
time.sleep(20)
"""
_NO_CHROOT = f"setpriv --bounding-set -sys_chroot --inh-caps -sys_chroot {SSHD}"
_ANOTHER_KEY_MODE = "mount -t tmpfs tmpfs /mnt; cp -L /root/.ssh/id_rsa /mnt; chmod 640 /mnt/id_rsa"
_LONELY = "ip link add lonely0 type veth peer lonely1; ip link set lonely0 up; ip addr add 10.{}.0.1/24 dev lonely0"
_OTHER_PATH = "sed -i 's#PATH=[^ ]*#PATH=/usr/bin:/bin#' /etc/ssh/sshd_config"
_HIDE_SSH = "for path in /usr/bin/ssh /usr/bin/rsh; do ! [ -e $path ] || mount --bind /dev/null $path; done"
_WORLD = "mpi.ompi_mpi_comm_world if hasattr(mpi, 'ompi_mpi_comm_world') else 0x44000000"


def _ssh_config(*lines: str) -> str:
    options = "".join(f"  {line}\\n" for line in lines)
    return f"printf 'Host *\\n{options}' >/etc/ssh/ssh_config"


SCENARIOS = {
    # Programs.
    "no-program": Scenario("-n 2 nosuch", "no-program"),
    "not-executable": Scenario("-n 2 /etc/mpi/hostfile", "no-program"),
    "exec-format": Scenario("-n 2 /etc/hosts", "no-program", OPEN_MPI),
    "killed": Scenario(_mpi("os.kill(os.getpid(), 9)"), "rank-killed", of_hydra="rank-ended"),
    "segfault": Scenario(_rank("kill -11 $$"), "rank-crashed"),
    "cpp-exception": Scenario(
        _mpi("ctypes.CDLL('libstdc++.so.6')._ZSt21__throw_runtime_errorPKc(b'no such model')"), "program-aborted"
    ),
    "handled-traceback": Scenario(_python(_HANDLED), "rank-crashed"),
    "mpi-error": Scenario(_mpi("mpi.MPI_Barrier(0)"), "mpi-error"),
    "abort": Scenario(_mpi(f"mpi.MPI_Abort({_WORLD}, 5)"), ""),
    "traceback": Scenario(_mpi("open('/data/train.bin')"), ""),
    # Exit code 9 must not be mistaken for signal 9. Hydra reports no exit code if a worker has only one rank.
    "exit-status": Scenario(_mpi("(print('no data', flush=True), os._exit(9))"), ""),
    # With several ranks on a worker, MPICH reports no exit code, or it reports the signal 9 that ended the other ranks.
    # Two of these scenarios therefore leave MPICH out.
    "exit-status-of-several": Scenario(_one_of_six("os._exit(3)"), "rank-ended", ("intel",), slots=3),
    "traceback-of-several": Scenario(_one_of_six("open('/data/train.bin')"), "", HYDRA, slots=3),
    "segfault-of-several": Scenario(_one_of_six("os.kill(os.getpid(), 11)"), "rank-crashed", ("intel",), slots=3),
    "no-fabric": Scenario(f"-genv FI_PROVIDER psm3 {_mpi('0')}", "no-fabric", ("intel",)),
    "shm": Scenario("-n 4 {rank}", "shared-memory", slots=2, workers="mount -t tmpfs -o size=64k tmpfs /dev/shm"),
    # Workers and networks.
    "worker-lost": Scenario(_mpi("0"), "worker-lost", worker_is_lost=True),
    "no-tcp": Scenario(
        f"-mca oob_tcp_if_include lonely0 {_HOSTNAME}",
        "no-tcp",
        ("openmpi-4",),
        before=_LONELY.format(98),
        workers=_LONELY.format(99),
    ),
    "no-interface": Scenario(
        f"-mca oob_tcp_if_include lonely0 {_HOSTNAME}", "no-interface", ("openmpi-4",), before=_LONELY.format(98)
    ),
    "no-daemon-program": Scenario(_HOSTNAME, "no-daemon-program", workers="mount -t tmpfs tmpfs {folder}/bin"),
    "no-daemon-path": Scenario(_HOSTNAME, "no-daemon-program", ("openmpi-4",), workers=_OTHER_PATH),
    "no-daemon-library": Scenario(_HOSTNAME, "no-library", OPEN_MPI, workers="mount -t tmpfs tmpfs {folder}/lib"),
    # ssh and sshd.
    "ssh-closed": Scenario(
        _HOSTNAME, "ssh-closed", before=_ssh_config("StrictHostKeyChecking no"), sshd=_NO_CHROOT, of_intel="no-daemon"
    ),
    "ssh-silent": Scenario(_HOSTNAME, "no-daemon", sshd=_NO_CHROOT),
    "sshd-chroot": Scenario(_HOSTNAME, "sshd-chroot", ("openmpi-4",), sshd=_NO_CHROOT, of_worker=True),
    "no-host-keys": Scenario(
        _HOSTNAME, "no-host-keys", ("openmpi-4",), sshd=f"{SSHD} -f /dev/null -h /nosuch", of_worker=True
    ),
    "sshd-directory": Scenario(_HOSTNAME, "sshd-directory", ("openmpi-4",), workers="rmdir /run/sshd", of_worker=True),
    "wrong-key": Scenario(_HOSTNAME, "wrong-key", sshd=f"{SSHD} -o StrictModes=yes", of_intel="no-daemon"),
    "strict-modes": Scenario(
        _HOSTNAME, "strict-modes", ("openmpi-4",), sshd=f"{SSHD} -o StrictModes=yes", of_worker=True
    ),
    "key-permissions": Scenario(
        _HOSTNAME, "key-permissions", before=f"{_ANOTHER_KEY_MODE}; mount --bind /mnt /root/.ssh", of_intel="no-daemon"
    ),
    "host-key": Scenario(_HOSTNAME, "host-key", before=_ssh_config("StrictHostKeyChecking yes"), of_intel="no-daemon"),
    "no-name": Scenario(_HOSTNAME, "no-name", hostfile="train-worker-7.train.team-a.svc", of_intel="no-daemon"),
    "no-sshd": Scenario(
        _HOSTNAME, "no-sshd", before=_ssh_config("Port 2022", "StrictHostKeyChecking no"), of_intel="no-daemon"
    ),
    "no-route": Scenario(_HOSTNAME, "no-route", before="ip route add unreachable 10.20.0.3", of_intel="no-daemon"),
    "no-ssh": Scenario(_HOSTNAME, "no-ssh", before=_HIDE_SSH),
    # Command lines.
    "wrong-hostfile": Scenario("--hostfile /etc/mpi/hosts -n 2 hostname", "wrong-hostfile", OPEN_MPI),
    "wrong-hostfile-hydra": Scenario("-f /etc/mpi/hosts -n 2 hostname", "wrong-hostfile", HYDRA),
    "slots": Scenario("-n 4 hostname", "slots", OPEN_MPI),
    "ppr-N": Scenario("-n 8 -N 4 hostname", "slots", OPEN_MPI, slots=2),
    "ppr-few": Scenario("-n 4 --map-by ppr:1:node hostname", "slots-per-worker", OPEN_MPI, slots=2),
    "binding": Scenario("--host train-launcher:8 -n 8 --bind-to core hostname", "binding", OPEN_MPI),
    "as-root": Scenario(_HOSTNAME, "as-root", OPEN_MPI, root=False),
    "option": Scenario(f"--nosuch {_HOSTNAME}", "option", OPEN_MPI),
    "option-of-open-mpi": Scenario(f"--allow-run-as-root {_HOSTNAME}", "option", HYDRA),
    "option-of-hydra": Scenario(f"-genv A B {_HOSTNAME}", "option", OPEN_MPI),
}


def record(name: str, release_name: str, sshd: Sshd, folder: Path) -> str:
    """The log of the launcher, or the logs of both workers if `of_worker` is set."""
    scenario, release = SCENARIOS[name], installed(release_name)
    environment = release.environment
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "FI_PROVIDER": "tcp"}
    hostfile = scenario.hostfile or "".join(_entry(release_name, host, scenario.slots) for host in HOSTS)
    files = {"hostfile": hostfile}
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=60)
    keys = {"id_rsa": key.read_text(), "authorized_keys": key.with_suffix(".pub").read_text()}
    contents = {"ssh": _encoded(keys), "config": _encoded(files)}
    variables = {
        "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
        "I_MPI_PERHOST": str(scenario.slots),
        "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
        **(allowed if scenario.root else {}),
    }
    rank = f"{sys.executable} {Path(pods.__file__).with_name('rank.py')} {release.library}"
    launch = f"mpirun {scenario.command.replace('{rank}', rank).replace('{library}', str(release.library))}"
    manifests = [
        _pod("launcher", ["sh", "-c", launch], variables),
        *(_pod(f"worker-{number}", scenario.sshd.split(), {}) for number in (0, 1)),
    ]
    with pods.running(manifests, contents, environment, folder) as (launcher, *workers), ExitStack() as run:
        for number, worker in enumerate(workers):
            _inside(worker, f"chmod 777 /root/.ssh; {scenario.workers.replace('{folder}', str(release.folder))}")
            words = [sshd.program if word == "/usr/sbin/sshd" else word for word in worker.command]
            if sshd.libraries:
                words.insert(len(words) - len(worker.container["command"]), f"LD_LIBRARY_PATH={sshd.libraries}")
            program = Program(f"sshd-{number}", words, log=folder / f"sshd-{number}.log", env={})
            run.callback(program.stop)
            with suppress(ControlPlaneError) if scenario.of_worker else nullcontext():  # sshd may exit at once
                program.wait_ready(lambda program=program: "Server listening" in program.log.read_text())
        _inside(launcher, scenario.before)
        if scenario.worker_is_lost:
            loss = Timer(LOSS_AFTER, _kill_all, [workers[1]])
            loss.start()
            run.callback(loss.join)
        together = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(launcher.command, **together, text=True, errors="replace", timeout=100, check=False)
        log = "".join((folder / f"sshd-{number}.log").read_text() for number in (0, 1))
        log = log if scenario.of_worker else done.stdout
        log = log.replace(str(release.folder), "/opt/mpi")
        return log.replace(sys.prefix, "/opt/venv").replace(sys.base_prefix, "/usr/local")


def _kill_all(pod: pods.Pod) -> None:
    """Kill all processes in the pod's network namespace, except the process that keeps the namespace."""
    network = Path(f"/proc/{pod.process.pid}/ns/net").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "ns/net").readlink() == network and folder.name != str(pod.process.pid):
                os.kill(int(folder.name), signal.SIGKILL)


def _entry(release: str, host: str, slots: int) -> str:
    return f"{host} slots={slots}\n" if release.startswith("openmpi") else f"{host}:{slots}\n"


def _encoded(files: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in files.items()}


def _pod(name: str, command: list[str], env: Mapping[str, str]) -> dict[str, Any]:
    paths = {"ssh": "/root/.ssh", "config": "/etc/mpi"}
    items = {
        "ssh": [{"key": key, "path": key, "mode": 0o600} for key in ("id_rsa", "authorized_keys")],
        "config": [{"key": "hostfile", "path": "hostfile"}],
    }
    return {
        "metadata": {"namespace": "team-a"},
        "spec": {
            "hostname": f"{JOB}-{name}",
            "subdomain": JOB,
            "containers": [
                {
                    "name": "main",
                    "command": command,
                    "env": [{"name": key, "value": value} for key, value in env.items()],
                    "volumeMounts": [{"name": key, "mountPath": path} for key, path in paths.items()],
                }
            ],
            "volumes": [
                {"name": "ssh", "secret": {"secretName": "ssh", "items": items["ssh"]}},
                {"name": "config", "configMap": {"name": "config", "items": items["config"]}},
            ],
        },
    }


def _inside(pod: pods.Pod, script: str) -> None:
    if script:
        subprocess.run(
            [*pods.enter(pod.process, "--net", "--uts", "--mount"), "sh", "-euc", script], check=True, timeout=60
        )


def main() -> None:
    selected = set(sys.argv[1:])
    with TemporaryDirectory() as place:
        sshd = find_sshd(Path(place))
        for name, scenario in SCENARIOS.items():
            for release in scenario.releases:
                file = f"{name}.{release}.log"
                if not selected or selected & {name, release, f"{name}.{release}"}:
                    with TemporaryDirectory() as folder:
                        log = record(name, release, sshd, Path(folder))
                    (LOGS / file).write_text(log)
                    sys.stdout.write(f"{file}: {len(log)} characters\n")


if __name__ == "__main__":
    main()
