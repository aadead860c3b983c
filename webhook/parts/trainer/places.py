"""Translates fields of the equivalent MPIJob into fields of the TrainJob and its runtime."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_PATHS: Final = (
    r"\bspec\.(?:mpiReplicaSpecs|slotsPerWorker|runLauncherAsWorker|sshAuthMountPath|mpiImplementation|runPolicy)"
    r"(?:\[[^\]]*\]|\.\w+)*"
)
_NAMES: Final = {
    "replicas": "numNodes",
    "worker count": "numNodes",
    "slotsPerWorker": "numProcPerNode",
    "runLauncherAsWorker": "runLauncherAsNode",
}
_COUNTED: Final = r"(?P<before>(?:replicas|worker count) to |Use )(?P<count>\d+)(?P<after> workers?\b)?"
# Quoted text may be a user's text, so it is not translated.
_WORDS: Final = re.compile(rf'"[^"]*"|(?P<path>{_PATHS})|{_COUNTED}|\b(?P<name>{"|".join(_NAMES)})\b')


class Place(NamedTuple):
    """A field of the TrainJob or of its runtime."""

    path: str
    in_runtime: bool = False
    """Whether the field is in the reviewed TrainJob's runtime."""


class Places:
    """Maps paths of the MPIJob. A path that is not in `places` is relative to the place of its parent."""

    def __init__(self, places: Mapping[str, Place], *, launcher_is_node: bool, runtime: str = "") -> None:
        self._places = places
        self._launchers = 1 if launcher_is_node else 0
        self._runtime = runtime

    def of(self, path: str) -> Place:
        rest = ""
        while path not in self._places:
            end = _start_of_last(path)
            if end < 0:
                return Place(path + rest)
            path, rest = path[:end], path[end:] + rest
        place = self._places[path]
        return place._replace(path=place.path + rest)

    def shown(self, path: str) -> tuple[str, str]:
        """The path in the reviewed object, and a suffix for messages. The suffix names the field of the runtime."""
        place = self.of(path)
        return ("spec.runtimeRef", f" ({self._runtime}, {place.path})") if place.in_runtime else (place.path, "")

    def worded(self, text: str) -> str:
        """Translates field names and numbers in a message. `numNodes` includes a launcher that is a node."""
        return _WORDS.sub(self._word, text)

    def _word(self, match: re.Match[str]) -> str:
        if path := match["path"]:
            return self.of(path).path
        if before := match["before"]:
            if before == "Use " and not match["after"]:
                return match[0]
            noun = before if before == "Use " else "numNodes to "
            count = int(match["count"]) + self._launchers
            after = (" node" if count == 1 else " nodes") if match["after"] else ""
            return f"{noun}{count}{after}"
        return _NAMES.get(match[0], match[0])


def _start_of_last(path: str) -> int:
    if path.endswith("]"):
        return path.find("[", path.rfind("]", 0, -1) + 1)
    start = path.rfind(".")
    return start if start < len(path) - 1 and start > max(path.rfind("["), path.rfind("]")) else -1
