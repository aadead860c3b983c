"""Builds the control plane once into the user's cache: `python -m tests.controlplane.build [--force]`."""

import argparse
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.controlplane.process import ControlPlaneError, ends_in_words, guarded
from tests.controlplane.progress import Progress
from tests.controlplane.recipe import (
    CONTROL_PLANE,
    FLAGS,
    Data,
    Recipe,
    Target,
    cache_key,
    go_minimum,
    linker_flags,
)
from tests.controlplane.toolchain import find_go, go_environment


def cache_root() -> Path:
    """The folder of all builds, with a subfolder for each cache key."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "mpijob-webhook" / "controlplane"


def ensure_built(recipe: Recipe = CONTROL_PLANE, *, force: bool = False, progress: Progress | None = None) -> Path:
    """The folder with the programs (in `bin`) and the upstream YAML files. Builds them if they are not cached.

    A second simultaneous caller waits for the first. The folder is created only when it is complete.
    """
    progress = progress or Progress()
    folder = cache_root() / cache_key(recipe)
    if folder.is_dir() and not force:
        folder.touch()  # so that remove_unused keeps it
        return folder
    with build_lock(progress):
        if folder.is_dir() and not force:
            return folder
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)  # remains of a killed build
        (partial / "bin").mkdir(parents=True)
        progress.say(f"Building {recipe.what}, once: the result is cached in {cache_root()}.")
        progress.say(f"This usually takes {recipe.takes} on 2 cores, less if Go has cached packages.")
        go = find_go(go_minimum(recipe.root), say=progress.say)
        for target in recipe.targets:
            build_program(go, recipe, target, partial / "bin" / target.name, progress)
        for data in recipe.data:
            copy_data(go, data, recipe.root / data.folder, partial / data.into)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        remove_unused(keep=folder)
    return folder


@contextmanager
def build_lock(progress: Progress) -> Iterator[None]:
    """Hold the lock that all builds share. The kernel releases the lock when this process exits for any reason."""
    cache_root().mkdir(parents=True, exist_ok=True)
    with (cache_root() / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            progress.say(f"Another build is running (process {file.read().strip() or 'unknown'}): waiting for it.")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def build_program(go: Path, recipe: Recipe, target: Target, output: Path, progress: Progress) -> None:
    """Run `go build -v` with a progress line. Raises ControlPlaneError with the last lines of output if it fails."""
    flags = linker_flags(target, recipe.root)
    command = guarded([go, "build", "-v", *FLAGS, "-ldflags", flags, "-o", output, target.package])
    number = recipe.targets.index(target) + 1
    label = f"[{number}/{len(recipe.targets)}] {target.name}" + (f" ({target.contains})" if target.contains else "")
    log = output.parent.parent / "go.log"
    with (
        log.open("wb") as sink,
        progress.step(label) as step,
        subprocess.Popen(
            command, cwd=recipe.root / target.folder, env=go_environment(), stdout=sink, stderr=sink
        ) as process,
    ):
        try:
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
                step.update("".join(log.read_text(errors="replace").splitlines()[-1:]))
        except BaseException:
            process.terminate()
            raise
        if process.returncode:
            raise ControlPlaneError(_failure(target, log))
    log.unlink()


def remove_unused(*, keep: Path) -> None:
    """Delete builds that were not used for two weeks. Each build has more than 400 MB."""
    limit = time.time() - 14 * 24 * 3600
    for path in cache_root().iterdir():
        if path.is_dir() and path != keep and path.stat().st_mtime < limit:
            shutil.rmtree(path, ignore_errors=True)


def copy_data(go: Path, data: Data, folder: Path, into: Path) -> None:
    """Copy YAML files from a module, so that the tests do not need Go later."""
    command = [str(go), "list", "-m", "-f", "{{.Dir}}", data.module]
    done = subprocess.run(command, cwd=folder, env=go_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise ControlPlaneError(f"`go list -m {data.module}` failed:\n{done.stderr.strip()}")
    module = Path(done.stdout.strip())
    files = [path for glob in data.globs for path in sorted(module.glob(glob))]
    if not files:
        raise ControlPlaneError(f"{module} holds none of {', '.join(data.globs)}: the module's layout has changed.")
    if into.suffix:
        into.write_text("\n---\n".join(path.read_text() for path in files))
        return
    for path in files:
        target = into / (path.relative_to(module) if data.tree else path.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())  # files in the module cache are read-only


def _failure(target: Target, log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    packages = [
        line for line in lines if " " in line or "\t" in line
    ]  # lines without a blank are names of packages, by -v
    return "\n".join(
        [
            f"Building {target.name} failed. The last lines of output:",
            *(f"    {line}" for line in packages[-25:]),
            "If it could not download: check the network, or set GOPROXY to a proxy that this machine can reach.",
            "If the disk is full: 3 GB are needed below the folders of `go env GOCACHE GOMODCACHE`.",
            "Then run this again; compiled packages are cached.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.build", description=__doc__)
    parser.add_argument("--force", action="store_true", help="build even if it is cached")
    force = parser.parse_args().force
    with ends_in_words():
        folder = ensure_built(force=force)
    Progress().say(f"The test control plane is ready: {folder}")


if __name__ == "__main__":
    main()
