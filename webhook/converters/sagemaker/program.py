"""The command line of the launcher: mpirun, and what each rank is."""

import re
import shlex
from collections.abc import Sequence
from typing import Any, Final

from webhook.api.placeholders import fill_in
from webhook.converters.report import Report
from webhook.converters.sagemaker import distribution
from webhook.converters.sagemaker.distribution import Distribution, Way
from webhook.converters.sagemaker.request import TrainingJob

CODE: Final = "/opt/ml/code"
PORT: Final = 7777
_PROGRAM_ENV: Final = "SAGEMAKER_PROGRAM"
_STARTERS: Final = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "horovodrun"})
# Of the toolkit's command line, what is not about hosts and the names of their networks.
_OPTIONS: Final = ("-bind-to", "none", "-map-by", "slot", "-mca", "pml", "ob1", "-mca", "btl", "^openib")
_PASSED_ON: Final = ("LD_LIBRARY_PATH", "PATH")
_EXPANDED: Final = re.compile(r"\$(?=[$(])")


def literal(text: str) -> str:
    """For command, args and env of a container, where Kubernetes would put variables in place of $(NAME).

    SageMaker does not; and what it put between the quotes of a shell could end them.
    """
    return _EXPANDED.sub("$$", text)


def entry_point(request: TrainingJob) -> str:
    """The script or module that the toolkit runs; empty where there is none."""
    parameters = request.hyper_parameters or {}
    written = distribution.value(parameters.get(distribution.PROGRAM, ""))
    return written if isinstance(written, str) and written else (request.environment or {}).get(_PROGRAM_ENV, "")


def starts_ranks(request: TrainingJob) -> bool:
    """Whether the container's own command is an mpirun."""
    entry = request.algorithm_specification.container_entrypoint or [""]
    return entry[0].rpartition("/")[2] in _STARTERS


def command(
    request: TrainingJob, how: Distribution, report: Report, *, ranks: int, host: str, variables: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Command and arguments; `host` is where processes of torchrun meet, `variables` what ranks get."""
    algorithm = request.algorithm_specification
    own = [*(algorithm.container_entrypoint or ()), *(algorithm.container_arguments or ())]
    if starts_ranks(request):
        _tell_of_own(request, report, "is the launcher's command: take --host and a hostfile of its own out of it")
        return own[:1], own[1:]
    words = ["--allow-run-as-root", "-np", str(ranks), *_OPTIONS, *how.options]
    for name in (*_PASSED_ON, *variables):
        words += ["-x", name]
    if own:
        _tell_of_own(request, report, "is what mpirun starts, and no longer the first process of each machine")
        return ["mpirun"], [*words, *own]
    return ["mpirun"], [*words, *_toolkit(request, how, ranks, host, report)]


def _tell_of_own(request: TrainingJob, report: Report, what: str) -> None:
    for name, written in (
        ("ContainerEntrypoint", request.algorithm_specification.container_entrypoint),
        ("ContainerArguments", request.algorithm_specification.container_arguments),
    ):
        if written:
            report.changed(f"AlgorithmSpecification.{name}", what)


def _toolkit(request: TrainingJob, how: Distribution, nodes: int, host: str, report: Report) -> list[str]:
    """What the image's toolkit would have started."""
    entry = entry_point(request)
    parameters = distribution.of_user(request.hyper_parameters or {})
    if not entry:
        if how.way is not Way.EACH:
            return [fill_in("the program that each rank runs, with its arguments")]
        report.changed(
            "AlgorithmSpecification.TrainingImage",
            "is given no program, so each rank runs train of the image, as SageMaker does. It reads files in"
            " /opt/ml/input/config: put them there, or run it otherwise",
        )
        return ["train"]
    arguments = _arguments(parameters)
    module = not entry.endswith((".py", ".sh"))
    report.mapped(
        distribution.field(distribution.PROGRAM), f"is what each rank runs, in {CODE}, with hyperparameters as options"
    )
    start = ["-wdir", CODE]
    if how.way is Way.TORCHRUN:
        meet = ["--nnodes", str(nodes), "--nproc_per_node", str(how.processes)]
        meet += ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"{host}:{PORT}"]
        return [*start, "torchrun", *meet, *(["-m"] if module else []), entry, *arguments]
    if entry.endswith(".sh"):
        return [*start, "/bin/sh", "-c", shlex.join([f"./{entry}", *arguments])]
    python = ["python", "-m", "mpi4py"] if how.way is Way.MPI else ["python"]
    return [*start, *python, *(["-m"] if module else []), entry, *arguments]


def _arguments(parameters: dict[str, Any]) -> list[str]:
    """As the toolkit writes them: `--name value`, a single letter with one dash."""
    words = []
    for name, written in parameters.items():
        words += [f"--{name}" if len(name) > 1 else f"-{name}", _text(written)]
    return words


def _text(written: Any) -> str:
    if written is None:
        return ""
    if isinstance(written, dict):
        return ",".join(f"{key}={item}" for key, item in sorted(written.items()))
    return str(written)
