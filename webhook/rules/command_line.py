"""Commands are split into words, and mpirun gets a number of ranks.

No shell reads a container's `command`: with `command: ["mpirun -np 4 train"]` the node looks for a program of that
whole name and starts nothing, and mpirun knows no option `"-np 4"`. A shell without `-c` takes a command line for the
name of a file.

`-np eight` and `-np -1` are no numbers of ranks. Open MPI 4 refuses both; Open MPI 5, MPICH and Intel MPI refuse the
job or start as many ranks as they please. `-np 0` is a rank for each slot to Open MPI, and an error to others.

What is certain is refused: a launcher whose command is an `mpirun` of Open MPI with a negative number, or with an
option in one word. The rest is a warning: an image may have what is not seen here.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.api import mpirun
from webhook.api.mpijob import LAUNCHER, MPIJob, replica_path
from webhook.api.mpirun import Invocation
from webhook.api.mpirun_options import HYDRA, OPEN_MPI
from webhook.api.pod import Container, PodTemplate
from webhook.kit.admitted import Span
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.open_mpi import is_all_that_runs
from webhook.predict.sizes import Sizes
from webhook.rules import Violation, rule, shortened

_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)
# Only a shell makes something of these, or Kubernetes puts a variable there.
_EXPANDED: Final = re.compile(r"[$`]")
_OF_A_SHELL: Final = re.compile(r"[$`;&|<>\n]")
# A longer list leaves a warning no room for it.
_ROOM: Final = 24
# And no more of a text is split: that goes character by character.
_READ: Final = 256
_LISTED: Final = 50
_BLANKS: Final = " \t\r\n"


class Settings(RuleSettings):
    """Nothing but the action: what a program is called is the image's."""


@rule("command-line", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """What each container starts; then the launcher's mpirun."""
    for _, path, replica in job.replicas():
        yield from _programs(replica.template, path)
    for call in job.mpirun_calls:
        yield from _call(call, job, ctx)


def _programs(template: PodTemplate, path: str) -> Sequence[Violation]:
    """What is wrong with the first words of containers."""
    found: list[Violation] = []
    if (pod := template.spec) is None or pod.for_windows:
        return found
    for kind, containers in (("containers", pod.containers), ("initContainers", pod.init_containers)):
        for index, container in enumerate(containers or ()):
            if container.command:
                found += _program(container.command, container.argv, f"{path}.template.spec.{kind}[{index}]")
    return found


def _program(command: Sequence[str], argv: Sequence[str], path: str) -> Iterator[Violation]:
    """Whether the first word can be a program, and what a shell runs can be a file."""
    if command[0] and command[0].split() != [command[0]]:
        fix = f"Write {_words(command)}." if _OF_A_SHELL.search(command[0]) is None else 'Put "sh", "-c" before it.'
        yield Violation(f"{path}.command", "is not split into words", fix, advisory=True)
    elif script := mpirun.taken_for_a_file(argv):
        field = "command" if script in command else "args"
        shell = command[0].rpartition("/")[2]
        fault = f"{shell} takes the command line for a file"
        yield Violation(f"{path}.{field}", fault, 'Put "-c" before it.', advisory=True)


def _words(command: Sequence[str]) -> str:
    """The beginning of the list that was meant."""
    text = command[0].strip(_BLANKS)
    cut = len(text) > _READ
    words = _split(text[:_READ], cut=cut)
    quoted = [json.dumps(shortened(word, _ROOM), ensure_ascii=False) for word in words]
    shown = quoted[:1]
    for word in quoted[1:]:
        if len(", ".join((*shown, word))) > _ROOM:
            break
        shown.append(word)
    whole = len(shown) == len(quoted) and len(command) == 1 and not cut
    return f"[{', '.join(shown)}{'' if whole else ', ...'}]"


def _split(text: str, *, cut: bool) -> list[str]:
    """Its words as a shell reads them; of a text that was `cut` without the last, unless it is the only one."""
    reader, words = shlex.shlex(text, posix=True), list[str]()
    reader.whitespace_split, reader.commenters = True, ""
    try:
        words += reader
    except ValueError:  # a quotation that does not end
        return words if cut and words else text.split()
    return words[:-1] or words if cut else words


def _call(call: Invocation, job: MPIJob, ctx: Context) -> Iterator[Violation]:
    """The options of one call of mpirun."""
    launcher = job.launcher.template.containers[0] if job.launcher else Container()
    spoken = mpirun.dialect(call.program, job.spec.mpi_implementation)
    certain = spoken is OPEN_MPI and is_all_that_runs(launcher, call)
    words = call.unread.split()
    if len(words) > 1 and words[0] in spoken.options:
        more = ", ..." if len(words) > _LISTED else "."
        fix = f"Split it: {', '.join(json.dumps(word, ensure_ascii=False) for word in words[:_LISTED])}{more}"
        fault = f'"{shortened(call.unread)}" is one word, and no option'
        yield Violation(_place(launcher, call.unread), fault, fix, advisory=not certain)
    for name, values in call.options or ():
        if name not in spoken.ranks or not (value := "".join(values)) or _EXPANDED.search(value):
            continue
        if _NUMBER.fullmatch(value) and (int(value) or spoken is not HYDRA):
            continue
        refuses = certain and value.startswith("-")
        effect = f"{call.program} refuses it{'' if refuses else ', or starts another number'}"
        fault = f"-{name} {shortened(value)} is no number of ranks ({effect})"
        yield Violation(_place(launcher, value), fault, fix=_ranks(name, job, ctx), advisory=not refuses)


def _place(container: Container, text: str) -> str:
    field = "command" if any(text in word for word in container.command or ()) else "args"
    return f"{replica_path(LAUNCHER)}.template.spec.containers[0].{field}"


def _ranks(name: str, job: MPIJob, ctx: Context) -> str:
    """A rank for each slot, where the job's size is not itself to be changed."""
    sizes = Sizes.of(job, ctx)
    total = sizes.slots * (sizes.own.workers + (1 if sizes.computing_launcher else 0))
    stays = sizes.own.workers in sizes.replicas() and sizes.slots in ctx.admitted.slots & Span(1)
    stays = stays and sizes.own.gpus in {0, sizes.slots}
    return f"Set -{name} to {total}." if stays else "Write how many ranks to start."
