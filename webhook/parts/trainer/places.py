"""Maps paths of the shape that rules read to the places where users wrote the values, and their field names."""

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
# Text in quotation marks may be the user's own.
_WORDS: Final = re.compile(rf'"[^"]*"|(?P<path>{_PATHS})|{_COUNTED}|\b(?P<name>{"|".join(_NAMES)})\b')


class Place(NamedTuple):
    """A field that a user wrote."""

    path: str
    in_runtime: bool = False
    """It is in the runtime, not in the object under review."""


class Places:
    """From paths of the shape to places; an unknown path is in the place of its parent."""

    def __init__(self, known: Mapping[str, Place], *, launcher_is_node: bool, runtime: str = "") -> None:
        self._known = known
        self._more = 1 if launcher_is_node else 0
        self._runtime = runtime

    def of(self, path: str) -> Place:
        """Where it was written."""
        rest = ""
        while path not in self._known:
            end = _start_of_last(path)
            if end < 0:
                return Place(path + rest)
            path, rest = path[:end], path[end:] + rest
        place = self._known[path]
        return place._replace(path=place.path + rest)

    def shown(self, path: str) -> tuple[str, str]:
        """The path in the object under review, and in parentheses the one in its runtime, if it is from there."""
        place = self.of(path)
        return ("spec.runtimeRef", f" ({self._runtime}, {place.path})") if place.in_runtime else (place.path, "")

    def worded(self, text: str) -> str:
        """`text` with the fields' names and numbers there: `numNodes` includes a launcher that is a node."""
        return _WORDS.sub(self._word, text)

    def _word(self, found: re.Match[str]) -> str:
        if path := found["path"]:
            return self.of(path).path
        if before := found["before"]:
            if before == "Use " and not found["after"]:
                return found[0]
            noun = before if before == "Use " else "numNodes to "
            count = int(found["count"]) + self._more
            after = (" node" if count == 1 else " nodes") if found["after"] else ""
            return f"{noun}{count}{after}"
        return _NAMES.get(found[0], found[0])


def _start_of_last(path: str) -> int:
    """The start of the last part of a path, `.name` or `[key]`; below 0 if there is none."""
    if path.endswith("]"):
        return path.find("[", path.rfind("]", 0, -1) + 1)
    start = path.rfind(".")
    return start if start < len(path) - 1 and start > max(path.rfind("["), path.rfind("]")) else -1
