"""Writes the bundle for disconnected clusters: `make bundle IMAGE=registry.example.com/ml/mpijob-webhook`.

The bundle works only with the Python version and the platform of this process. Use the Python of the image.
docs/disconnected.md explains each file.
"""
# ruff: noqa: T201 - a command prints

import argparse
import json
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatch_build import commit
from tools.release import building, mirrors, page_packages, provenance
from tools.release.building import ROOT
from webhook import __version__
from webhook.api import yaml
from webhook.api.images import ImageError, ImageReference, parse

LOCKS = ("requirements/run.txt", "requirements/build.txt", "requirements/bundle.txt")
PAGE_LOCK = "page/package-lock.json"
SUMS = "SHA256SUMS"
# The Dockerfile without the steps that need a network. The base image has Python and pip.
RECIPE = """\
# Builds the image from the wheels next to this file.
# BASE has python3 {python} with venv and pip; name it by its digest:
#   podman build --build-arg BASE=registry.example.com/base/python@sha256:... --tag {image} .
ARG BASE
FROM ${{BASE}} AS build
USER 0
COPY wheels /wheels
COPY requirements.txt /
RUN python3 -m venv /opt/mpijob-webhook && \\
    /opt/mpijob-webhook/bin/python -m pip install --no-cache-dir --no-compile --no-index --find-links=/wheels \\
      --only-binary=:all: --require-hashes --requirement /requirements.txt && \\
    /opt/mpijob-webhook/bin/python -m pip uninstall --yes --quiet pip setuptools && \\
    python3 -m compileall -q --invalidation-mode unchecked-hash /opt/mpijob-webhook/lib

FROM ${{BASE}}
COPY --from=build /opt/mpijob-webhook /opt/mpijob-webhook
ENV PATH=/opt/mpijob-webhook/bin:/usr/bin:/bin \\
    PYTHONDONTWRITEBYTECODE=1 \\
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8443 8081
ENTRYPOINT ["/opt/mpijob-webhook/bin/mpijob-webhook"]
CMD ["serve"]
"""


def make(folder: Path, image: ImageReference) -> None:
    """Write the bundle into a new or empty folder. Raises SystemExit with an error message."""
    building.emptied(folder)
    print("Fetching and building wheels ...", flush=True)
    building.locked_wheels(folder / "wheels")
    building.own_wheel(folder / "wheels")
    (folder / "requirements.txt").write_text("".join(_pinned(folder / "wheels")), encoding="utf-8")
    print("Installing them without an index, and listing the packages ...", flush=True)
    _bill_of_materials(folder)
    print("Writing manifests, Dockerfile and checksums ...", flush=True)
    python = sysconfig.get_python_version()
    (folder / "Containerfile").write_text(RECIPE.format(python=python, image=image), encoding="utf-8")
    _manifests(folder, image)
    for name, document in mirrors.examples(image).items():
        (folder / name).write_text(yaml.dump(document), encoding="utf-8")
    subjects = dict(_sums(folder))
    used = (*LOCKS, PAGE_LOCK) if building.PAGE.is_dir() else LOCKS
    locks = {lock: building.digest(ROOT / lock) for lock in used}
    statement = provenance.statement(subjects, commit(ROOT) or "unknown", locks)
    (folder / "provenance.json").write_text(json.dumps(statement, indent=2) + "\n", encoding="utf-8")
    (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in _sums(folder)), encoding="utf-8")


def _pinned(wheels: Path) -> Iterator[str]:
    for wheel in sorted(wheels.glob("*.whl")):
        name, version, *_ = wheel.name.split("-")
        yield f"{name.replace('_', '-').lower()}=={version} --hash=sha256:{building.digest(wheel)}\n"


def _bill_of_materials(folder: Path) -> None:
    path = folder / "sbom.cdx.json"
    with tempfile.TemporaryDirectory() as scratch:
        building.run([sys.executable, "-m", "venv", scratch])
        python = str(Path(scratch, "bin", "python"))
        offline = ["--no-index", f"--find-links={folder / 'wheels'}", "--require-hashes", "--only-binary=:all:"]
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        building.run([*pip, "install", *offline, "--requirement", str(folder / "requirements.txt")])
        building.run([*pip, "uninstall", "--yes", "pip", "setuptools"])
        cyclonedx = [str(Path(sysconfig.get_path("scripts"), "cyclonedx-py")), "environment"]
        project = ["--pyproject", str(ROOT / "pyproject.toml")]
        output = ["--output-reproducible", "--output-format", "JSON", "--output-file", str(path)]
        building.run([*cyclonedx, *project, *output, python])
    if building.PAGE.is_dir():
        document = json.loads(path.read_text(encoding="utf-8"))
        document["components"] += [package.component() for package in page_packages.packages()]
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _manifests(folder: Path, image: ImageReference) -> None:
    shutil.copytree(ROOT / "manifests", folder / "manifests")
    override: dict[str, Any] = {"name": "mpijob-webhook", "newName": f"{image.registry}/{image.repository}"}
    override |= {"digest": image.digest} if image.digest else {"newTag": image.tag or __version__}
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["manifests/overlays/default"],
        "images": [override],
    }
    (folder / "kustomization.yaml").write_text(yaml.dump(overlay), encoding="utf-8")


def _sums(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != SUMS:
            yield path.relative_to(folder).as_posix(), building.digest(path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.release.bundle", description=__doc__)
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument(
        "--image", default=f"registry.example.com/ml/mpijob-webhook:{__version__}", help="the image, with its digest"
    )
    arguments = parser.parse_args()
    try:
        image = parse(arguments.image)
    except ImageError as error:
        parser.error(f"--image: {error}")
    make(arguments.folder, image)
    print(f"Made: {arguments.folder}. docs/disconnected.md describes the next steps.")
    if not image.digest:
        print("The image has no digest yet: build it, then run this again with --image NAME@sha256:...")


if __name__ == "__main__":
    main()
