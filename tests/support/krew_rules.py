"""What krew asks of a plug-in's manifest before it installs it, and its index before it takes it.

internal/index/validation/validate.go and cmd/validate-krew-manifest/main.go of https://github.com/kubernetes-sigs/krew
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

API_VERSION: Final = "krew.googlecontainertools.github.com/v1alpha2"
SEMANTIC: Final = r"v\d+\.\d+\.\d+(-[\w.-]+)?(\+[\w.-]+)?"
MACHINES: Final = {(os, arch) for os in ("linux", "darwin", "windows") for arch in ("amd64", "arm64", "386", "arm")}
LONGEST: Final = {"description": 80, "shortDescription": 70, "caveats": 80}


def faults(file: str, manifest: Mapping[str, Any]) -> list[str]:
    """All that is wrong with it."""
    return [*_of_plugin(file, manifest), *_of_platforms(manifest["spec"]["platforms"])]


def _of_plugin(file: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    spec = manifest["spec"]
    if (manifest["apiVersion"], manifest["kind"]) != (API_VERSION, "Plugin"):
        yield "apiVersion and kind"
    if f"{manifest['metadata']['name']}.yaml" != file or not re.fullmatch(r"[\w-]+\.yaml", file):
        yield "the name is not that of the file, or not safe"
    if not re.fullmatch(r".+", spec["shortDescription"]):
        yield "shortDescription is empty, or has several lines"
    if not re.fullmatch(SEMANTIC, spec["version"]):
        yield "version"
    if not spec["platforms"]:
        yield "no platform"
    for field, most in LONGEST.items():
        if any(len(line) > most and " " in line.strip() for line in spec[field].split("\n")):
            yield f"{field} has a line of more than {most} characters"


def _of_platforms(platforms: list[Mapping[str, Any]]) -> Iterator[str]:
    machines = Counter()
    for platform in platforms:
        if not platform["uri"] or not platform["bin"]:
            yield "uri or bin is empty"
        if not re.fullmatch("[a-f0-9]{64}", platform["sha256"]):
            yield "sha256"
        if not platform.get("files", True) or not all(
            each["from"] and each["to"] for each in platform.get("files", [])
        ):
            yield "files"
        labels = platform["selector"]["matchLabels"]
        machine = labels.get("os"), labels.get("arch")
        machines[machine] += 1
        if labels.keys() - {"os", "arch"} or machine not in MACHINES:
            yield f"the selector {labels} means no machine that krew knows"
    yield from (f"several platforms for {machine}" for machine, count in machines.items() if count > 1)
