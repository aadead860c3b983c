"""Recipes that build programs from Go modules for the tests, and the cache keys of these builds."""

import hashlib
import platform
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
FLAGS = ("-trimpath", "-buildvcs=false")


@dataclass(frozen=True, kw_only=True)
class Target:
    """A program: `package` of the Go module in `folder`. A `stamped` program contains the Kubernetes version."""

    name: str
    package: str
    folder: str = "."
    stamped: bool = False
    contains: str = field(default="", repr=False)  # for progress lines, not for the cache key


@dataclass(frozen=True, kw_only=True)
class Data:
    """YAML files of a Go module for the tests. They are copied into the folder `into`, or joined to one file if
    `into` has a suffix.

    With `tree` they keep their folder structure, for files that refer to each other.
    """

    module: str
    globs: tuple[str, ...]
    into: str
    folder: str = "."
    tree: bool = False


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Targets that are built together from the Go modules below `root`. `what` and `takes` are for progress lines."""

    what: str
    takes: str
    targets: tuple[Target, ...]
    data: tuple[Data, ...] = ()
    root: Path = HERE


TARGETS = (
    Target(name="controlplane", package=".", stamped=True, contains="etcd and Kubernetes"),
    Target(name="kubectl", package="k8s.io/kubernetes/cmd/kubectl", stamped=True),
    Target(name="mpi-operator", package="./mpi-operator"),
    Target(name="operator-verdict", package="./operator-verdict", contains="the operator's own validation"),
    Target(name="allow-server", package="./allow-server", contains="the yardstick of the benchmarks"),
    Target(name="load", package="./load", contains="the load generator of the benchmarks"),
    Target(
        name="pod-security-webhook",
        package="k8s.io/pod-security-admission/cmd/webhook",
        contains="Kubernetes' own Pod Security as a webhook, for the benchmarks",
    ),
    Target(name="kwok", package="sigs.k8s.io/kwok/cmd/kwok", folder="kwok", contains="simulated nodes"),
    Target(name="kueue", package="sigs.k8s.io/kueue/cmd/kueue", folder="kueue"),
)
OPERATOR = "github.com/kubeflow/mpi-operator"
DATA = (
    Data(module=OPERATOR, globs=("manifests/base/*.yaml",), into="mpi-operator"),
    Data(module=OPERATOR, globs=("examples/v2beta1/*/*.yaml",), into="examples"),
    Data(
        module="sigs.k8s.io/kwok",
        globs=(
            "kustomize/stage/node/fast/node-initialize.yaml",
            "kustomize/stage/node/heartbeat/node-heartbeat.yaml",
            "kustomize/stage/pod/fast/pod-*.yaml",
        ),
        into="kwok-stages.yaml",
        folder="kwok",
    ),
    Data(
        module="sigs.k8s.io/kueue",
        globs=("config/default/*.yaml", "config/components/**/*.yaml"),
        into="kueue",
        folder="kueue",
        tree=True,
    ),
)


CONTROL_PLANE = Recipe(what="the test control plane", takes="5 to 15 minutes", targets=TARGETS, data=DATA)


def sources(root: Path) -> list[Path]:
    """The input files of the build, in a fixed order."""
    return sorted(path for pattern in ("go.mod", "go.sum", "*.go") for path in root.rglob(pattern))


def cache_key(recipe: Recipe) -> str:
    """Sixteen hex digits that depend on all sources, flags, programs, copied files and the platform."""
    digest = hashlib.sha256(repr((recipe.targets, recipe.data, FLAGS, sys.platform, platform.machine())).encode())
    for path in sources(recipe.root):
        content = path.read_bytes()
        digest.update(f"\n{path.relative_to(recipe.root)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def go_minimum(root: Path = HERE) -> tuple[int, int]:
    """The (major, minor) version of Go that all modules need."""
    lines = (re.search(r"^go (\d+)\.(\d+)", path.read_text(), re.MULTILINE) for path in root.rglob("go.mod"))
    return max((int(line[1]), int(line[2])) for line in lines if line)


def linker_flags(target: Target, root: Path) -> str:
    """The value of -ldflags: no debug tables, and the version that clients query, which `go build` leaves empty."""
    if not target.stamped:
        return "-s -w"
    match = re.search(r"^\tk8s\.io/kubernetes v(\d+)\.(\d+)(\.\S+)$", (root / "go.mod").read_text(), re.MULTILINE)
    if not match:
        raise ValueError(f"no version of k8s.io/kubernetes in {root / 'go.mod'}")
    major, minor, patch = match.groups()
    stamps = {"gitVersion": f"v{major}.{minor}{patch}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())])
