"""Pods as Linux namespaces of this machine. Each pod has a network, a host name, and the mounts of its manifest.

All pods use the programs of this machine. Writes below the folders in MOUNTED_OVER stay in the pod, so that the machine
is not changed. Everything is deleted when the processes end. Needs root.
"""

import os
import subprocess
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.process import Program
from tests.support.installation.sshd import CONFIG, accounts
from tests.support.mpi.programs import find

MOUNTED_OVER = ("etc", "root", "run")
# Arguments: a folder for layers, the host name, the image's files of /etc, then pairs of a source and its mount point.
SETUP = f"""
mount -t tmpfs tmpfs "$1"
for folder in {" ".join(MOUNTED_OVER)}; do
  mkdir "$1/$folder" "$1/$folder.work"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$1/$folder,workdir=$1/$folder.work" "/$folder"
done
hostname "$2"
cp -R "$3/." /etc
mkdir -p /run/sshd
shift 3
while [ $# -gt 0 ]; do
  mkdir -p "$2"
  mount --bind "$1" "$2"
  shift 2
done
"""
SWITCH = "ip link add pods type bridge; ip link set pods up;"
ALONE = ("--net", "--uts", "--mount", "--propagation", "private")
# As in images for MPI jobs, the launcher does not check the host keys of the workers.
SSH_CONFIG = "Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  BatchMode yes\n"


@dataclass(frozen=True)
class Pod:
    manifest: Mapping[str, Any]
    process: Program
    image: Mapping[str, str]
    """The image's environment."""
    host: str
    """The pod's line in /etc/hosts."""

    def learn(self, other: "Pod") -> None:
        """Let this pod resolve the name of `other`, as DNS does when a pod is ready."""
        tee = [*enter(self.process, "--mount"), "tee", "-a", "/etc/hosts"]
        subprocess.run(tee, input=other.host, text=True, stdout=subprocess.DEVNULL, check=True, timeout=30)

    def init_command(self, container: Mapping[str, Any]) -> list[str | Path]:
        """The command of an init container, without capabilities if the manifest drops them."""
        dropped = container.get("securityContext", {}).get("capabilities", {}).get("drop") == ["ALL"]
        bare = [find("setpriv"), "--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs"] if dropped else []
        clean = ["env", "-i", *(f"{name}={value}" for name, value in {**self.image, "HOME": "/root"}.items())]
        words = [*container.get("command", []), *container.get("args", [])]
        return [*enter(self.process, "--net", "--uts", "--mount"), *bare, *clean, *words]

    @property
    def container(self) -> Mapping[str, Any]:
        first: Mapping[str, Any] = self.manifest["spec"]["containers"][0]
        return first

    @property
    def command(self) -> list[str | Path]:
        """The command of the first container, in the pod's namespaces and with the container's environment."""
        variables = {variable["name"]: variable.get("value", "") for variable in self.container["env"]}
        env = {**self.image, "HOME": "/root", **variables}
        words = [*self.container.get("command", []), *self.container.get("args", [])]
        clean = ["env", "-i", *(f"{name}={value}" for name, value in env.items())]
        return [*enter(self.process, "--net", "--uts", "--mount"), *clean, *words]


def enter(process: Program, *namespaces: str) -> list[str | Path]:
    return [find("nsenter"), "--target", str(process.pid), *namespaces]


@contextmanager
def running(
    manifests: Sequence[Mapping[str, Any]],
    contents: Mapping[str, Mapping[str, str]],
    image: Mapping[str, str],
    folder: Path,
    *,
    published: bool = True,
) -> Iterator[list[Pod]]:
    """The pods of these manifests. With `published` they can resolve each other's names.

    `contents` has the base64 data of each Secret and ConfigMap by name.
    """
    names = [str(manifest["spec"]["hostname"]) for manifest in manifests]
    addresses = {name: f"10.20.0.{number}" for number, name in enumerate(names, start=1)}
    domain = f"{manifests[0]['spec']['subdomain']}.{manifests[0]['metadata']['namespace']}.svc"
    lines = {name: f"{address} {name}.{domain} {name}\n" for name, address in addresses.items()}
    with ExitStack() as stack:
        switch = _start(stack, folder, ["--net"], SWITCH, "switch")
        pods = []
        for number, manifest in enumerate(manifests):
            home = folder / names[number]
            (layers := home / "layers").mkdir(parents=True)
            etc = _etc(home / "etc", "".join(lines.values()) if published else lines[names[number]], image)
            arguments: list[str | Path] = [layers, names[number], etc, *_mounts(manifest, contents, home)]
            process = _start(stack, home, ALONE, SETUP, names[number], *arguments)
            _connect(process, switch, addresses[names[number]], f"pod{number}")
            pods.append(Pod(manifest, process, image, lines[names[number]]))
        yield pods


def _start(stack: ExitStack, folder: Path, namespaces: Sequence[str], script: str, *words: str | Path) -> Program:
    """A process with new namespaces, which runs until the stack is closed. `words` are the arguments of the script."""
    name = str(words[0])
    command = [find("unshare"), *namespaces, "sh", "-euc", f"{script}echo ready; exec sleep infinity", *words]
    process = Program(name, command, log=folder / f"{name}.log", env=dict(os.environ))
    stack.callback(process.stop)
    process.wait_ready(lambda: "ready" in process.log.read_text())
    return process


def _connect(pod: Program, switch: Program, address: str, port: str) -> None:
    ip = find("ip", "iproute2")
    inside, outside = ([*enter(one, "--net"), ip] for one in (pod, switch))
    steps = (
        [ip, "link", "add", "eth0", "netns", str(pod.pid), "type", "veth", "peer", port, "netns", str(switch.pid)],
        [*inside, "addr", "add", f"{address}/24", "dev", "eth0"],
        [*inside, "link", "set", "eth0", "up"],
        [*inside, "link", "set", "lo", "up"],
        [*outside, "link", "set", port, "master", "pods", "up"],
    )
    for step in steps:
        subprocess.run(step, check=True, timeout=30)


def _etc(folder: Path, hosts: str, image: Mapping[str, str]) -> Path:
    """The files in /etc of an image for MPI jobs, with the names of the other pods."""
    setenv = " ".join(f"{name}={value}" for name, value in image.items())
    (folder / "ssh").mkdir(parents=True)
    for name, text in {
        "hosts": f"127.0.0.1 localhost\n{hosts}",
        "passwd": accounts(),
        "ssh/ssh_config": SSH_CONFIG,
        "ssh/sshd_config": f"{CONFIG}SetEnv {setenv}\n",
    }.items():
        (folder / name).write_text(text)
    return folder


def _mounts(
    manifest: Mapping[str, Any], contents: Mapping[str, Mapping[str, str]], folder: Path
) -> Iterator[str | Path]:
    """The source and mount point of each Secret and ConfigMap that the first container mounts. Writes their files."""
    volumes = {volume["name"]: volume for volume in manifest["spec"]["volumes"]}
    for mount in manifest["spec"]["containers"][0]["volumeMounts"]:
        volume = volumes[mount["name"]]
        source = volume.get("secret") or volume.get("configMap")
        if source is None or source.get("secretName", source.get("name")) not in contents:
            continue  # the token of the service account
        data = contents[source.get("secretName", source.get("name"))]
        (target := folder / mount["name"]).mkdir()
        for item in source["items"]:
            file = target / item["path"]
            file.write_bytes(b64decode(data[item["key"]]))
            file.chmod(item.get("mode", source.get("defaultMode", 0o644)))
        yield from (target, mount["mountPath"])
