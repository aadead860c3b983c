"""The variables of the launcher's environment that mpirun passes on to the ranks.

Hydra (MPICH, Intel MPI) and horovodrun pass on all variables. Open MPI passes on its own variables and those named by
`-x`, where `*` at the end of a name matches any text. In a command line that cannot be parsed, `-x` counts anywhere.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from webhook.api import mpirun
from webhook.api.mpijob import MPIJob
from webhook.api.mpirun import Invocation
from webhook.api.mpirun_options import OPEN_MPI, PAIRS

# `-x NAME` or `-x NAME=value`, also in a shell variable with options for mpirun.
_EXPORT: Final = re.compile(r"""(?:^|[\s'"=])--?x[\s\\'"]++([A-Za-z_]\w*+=?)""")
# Open MPI always passes on variables with these prefixes (`orte/mca/schizo/ompi`, prrte `src/mca/schizo/ompi`).
_OF_OPEN_MPI: Final = ("OMPI_", "PRTE_", "PMIX_")
# Options of Hydra that restrict the variables.
_ONLY_SOME: Final = frozenset(("envlist", "envnone", "genvlist", "genvnone"))


class Exports:
    """The variables that the calls of mpirun in one command line pass on."""

    def __init__(self, calls: Sequence[Invocation], implementation: str, argv: Sequence[str] = ()) -> None:
        """`argv` is the whole command line."""
        dialects = [mpirun.dialect(call.program, implementation) for call in calls]
        self.all = OPEN_MPI not in dialects if calls else implementation != "OpenMPI"
        self.selective = dialects.count(OPEN_MPI) == len(dialects) > 0
        """Every call is a call of Open MPI, which passes on only some variables."""
        parsed = bool(calls) and None not in [call.options for call in calls]
        self.certain = parsed
        """The command line shows all variables that are passed on."""
        self.named: set[str] = set()
        """Variables named by `-x`."""
        self.assigned: set[str] = set()
        """Variables with a value on the command line."""
        exported: list[str] = [] if parsed else _EXPORT.findall("\n".join(argv))
        for call in calls if parsed else ():
            for option, values in call.options or ():
                if option == "x":
                    exported += values
                elif option in PAIRS and values:
                    self.assigned.add(values[0].partition("=")[0])
                elif option in _ONLY_SOME:
                    self.certain = False
        for variable in exported:
            name, equals, _ = variable.partition("=")
            if equals:
                self.assigned.add(name)
            self.named.add("*" if "$" in name else name)  # the shell may expand a variable in a name to any text
        self._starts: list[str] = []
        """The texts before a `*`, sorted; no text is the start of another text."""
        for start in sorted([name[:-1] for name in self.named if name[-1:] == "*"]):
            if not self._starts or not start.startswith(self._starts[-1]):
                self._starts.append(start)

    @staticmethod
    def of(job: MPIJob) -> "Exports":
        containers = job.launcher.template.containers if job.launcher else ()
        return Exports(job.mpirun_calls, job.mpi_implementation, containers[0].argv if containers else ())

    def names(self, name: str) -> bool:
        """Whether `-x` names the variable."""
        if name in self.named or not self._starts:
            return name in self.named
        # Among the sorted texts, only the last one that is not above `name` can be its beginning.
        place = bisect_right(self._starts, name)
        return place > 0 and name.startswith(self._starts[place - 1])

    def passes(self, name: str) -> bool:
        return self.all or self.names(name) or name.startswith(_OF_OPEN_MPI)
