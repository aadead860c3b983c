"""A fake `go`, so that the build's own logic is tested in milliseconds."""

import sys
from dataclasses import dataclass
from pathlib import Path

FAKE = """#!{python}
import os, pathlib, sys, time

home = pathlib.Path({home!r})
(home / "pid").write_text(str(os.getpid()))
with (home / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
match sys.argv[1:]:
    case ["env", "GOVERSION"]:
        print((home / "version").read_text())
    case ["list", *_, module]:
        print(home / "modules" / module)
    case ["build", *flags, output, package]:
        print("k8s.io/api/core/v1", file=sys.stderr)
        while (home / "hold").exists():
            time.sleep(0.02)
        if package in (home / "broken").read_text().split():
            sys.exit("main.go:7:2: undefined: nonsense")
        pathlib.Path(output).write_text(package)
"""
MODULES = {
    "github.com/kubeflow/mpi-operator": ["manifests/base/crd.yaml", "examples/v2beta1/pi/pi.yaml"],
    "sigs.k8s.io/kwok": [
        "kustomize/stage/node/fast/node-initialize.yaml",
        "kustomize/stage/pod/fast/pod-ready.yaml",
        "kustomize/stage/pod/fast/kustomization.yaml",
    ],
    "sigs.k8s.io/kueue": ["config/default/kustomization.yaml", "config/components/crd/kustomization.yaml"],
}


@dataclass(frozen=True)
class FakeGo:
    """The fake's folder: it is `go` there; `hold` makes builds wait while it exists, `broken` lists packages."""

    home: Path

    @property
    def calls(self) -> list[str]:
        path = self.home / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def builds(self) -> list[str]:
        """The packages that were built, in order."""
        return [call.rpartition(" ")[2] for call in self.calls if call.startswith("build")]


def fake_go(home: Path) -> FakeGo:
    """Write a fake Go 1.26 to `home`."""
    for module, files in MODULES.items():
        for file in files:
            path = home / "modules" / module / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"name: {path.stem}\n")
            path.chmod(0o444)  # as the module cache has it
    (home / "version").write_text("go1.26.3")
    (home / "broken").touch()
    program = home / "go"
    program.write_text(FAKE.format(python=sys.executable, home=str(home)))
    program.chmod(0o755)
    return FakeGo(home)
