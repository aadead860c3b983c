"""The processes that SageMaker would have started on the machines of a training job.

The Python SDK turns `distribution=` into hyperparameters with values in JSON, and SageMaker's training toolkit in the
image reads them (https://github.com/aws/sagemaker-training-toolkit, `params.py`, `runner.py`, `mpi.py`,
`torch_distributed.py`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from webhook.converters.report import ConversionError, Report

PREFIX: Final = "sagemaker_"
PROGRAM: Final = "sagemaker_program"
SUBMIT_DIRECTORY: Final = "sagemaker_submit_directory"
_MPI: Final = "sagemaker_mpi_enabled"
_MPI_PROCESSES: Final = "sagemaker_mpi_num_of_processes_per_host"
_MPI_ALL_PROCESSES: Final = "sagemaker_mpi_num_processes"
_MPI_OPTIONS: Final = "sagemaker_mpi_custom_mpi_options"
_TORCH: Final = ("sagemaker_torch_distributed_enabled", "sagemaker_pytorch_ddp_enabled")
_AWS_ONLY: Final = (
    "its libraries are in AWS's images alone and run on AWS alone: use Horovod, or PyTorch's own over NCCL"
)
_REFUSED: Final = {
    "sagemaker_distributed_dataparallel_enabled": f"smdistributed dataparallel cannot be converted: {_AWS_ONLY}",
    "mp_parameters": f"smdistributed modelparallel cannot be converted: {_AWS_ONLY}",
    "sagemaker_parameter_server_enabled": "parameter servers cannot become an MPI job: ranks do not serve parameters",
    "sagemaker_multi_worker_mirrored_strategy_enabled": "MultiWorkerMirroredStrategy cannot become an MPI job: its"
    " processes find each other by TF_CONFIG. Use Horovod",
    "sagemaker_pytorch_xla_multi_worker_enabled": (
        "PyTorch/XLA's own launcher cannot become an MPI job: use torch_distributed"
    ),
}
# Hyperparameters that the toolkit does not pass on; the last belongs to hyperparameter tuning.
_OF_THE_SERVICE: Final = "_tuning_objective_metric"


class Way(Enum):
    """The way processes are started."""

    MPI = "mpirun starts a rank for each"
    TORCHRUN = "torchrun starts those of a machine"
    EACH = "one on each machine"


@dataclass(frozen=True, slots=True)
class Distribution:
    """The processes on the machines."""

    way: Way
    processes: int
    """On each machine."""
    total: int
    options: tuple[str, ...] = ()
    """The user's options for mpirun."""


def field(name: str) -> str:
    """The path of a hyperparameter."""
    return f"HyperParameters[{name}]"


def value(text: str) -> Any:
    """The value of a hyperparameter: JSON, or else the text itself."""
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # JSON may contain halves of characters, which no text may have
    except (ValueError, RecursionError):
        return text
    return found


def of_user(parameters: Mapping[str, str]) -> dict[str, Any]:
    """The hyperparameters that the program gets."""
    own = {name for name in parameters if name.startswith(PREFIX) or name == _OF_THE_SERVICE}
    return {name: value(text) for name, text in sorted(parameters.items()) if name not in own}


def read(
    parameters: Mapping[str, str],
    default: int | None,
    hosts: int,
    report: Report,
    *,
    processes: int | None = None,
    by_itself: bool = False,
) -> Distribution:
    """The distribution on `hosts` machines, with the default number of processes on each; None: it depends on their
    setting.

    `processes` counts if the request does not say it; `by_itself`: the container starts ranks itself.
    """
    for name, why in _REFUSED.items():
        if parameters.get(name) and value(parameters[name]):
            raise ConversionError(field(name), why)
    default = processes or default
    if value(parameters.get(_MPI, "")) is True:
        return _mpi(parameters, default, hosts, report)
    for name in _TORCH:
        if value(parameters.get(name, "")) is True:
            default = _known_number(default)
            report.changed(
                field(name),
                f"mpirun starts torchrun on each worker, and that {default} processes, which find each other at the"
                " first worker; they were started by SageMaker's toolkit",
            )
            return Distribution(Way.TORCHRUN, default, default * hosts)
    each = _known_number(default) if by_itself else processes or 1
    return Distribution(Way.EACH if each == 1 else Way.MPI, each, each * hosts)


def _mpi(parameters: Mapping[str, str], default: int | None, hosts: int, report: Report) -> Distribution:
    report.mapped(field(_MPI), "is mpirun in the launcher, with the options of SageMaker's toolkit")
    each, total = _number(parameters, _MPI_PROCESSES), _number(parameters, _MPI_ALL_PROCESSES)
    if each is not None:
        report.mapped(field(_MPI_PROCESSES), f"is {each} slots for each of {hosts} machines, and {each * hosts} ranks")
    else:
        each = _known_number(default)
    if total is not None:
        report.mapped(field(_MPI_ALL_PROCESSES), "is the number of ranks")
    options = value(parameters.get(_MPI_OPTIONS, ""))
    if not isinstance(options, str):
        raise ConversionError(field(_MPI_OPTIONS), "is not a text of options")
    if options:
        report.mapped(field(_MPI_OPTIONS), "are options of mpirun in the launcher")
    return Distribution(Way.MPI, each, total or each * hosts, tuple(_known(options.split())))


def _known(words: list[str]) -> list[str]:
    """The toolkit has an option of its own, which sets a variable."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        name, _, level = word.partition("=")
        found += ["-x", f"NCCL_DEBUG={level or next(rest, 'INFO')}"] if name == "--NCCL_DEBUG" else [word]
    return found


def _number(parameters: Mapping[str, str], name: str) -> int | None:
    """The number in a hyperparameter; None if it is unset or empty."""
    if not (text := parameters.get(name)) or (number := value(text)) is None:
        return None
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 10:
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= 100_000:
        raise ConversionError(field(name), f'"{text[:60]}" is not a number of processes')
    return number


def _known_number(processes: int | None) -> int:
    if processes is None:
        raise ConversionError(
            "ResourceConfig.InstanceType",
            "has Neuron devices with a number of cores that depends on their setting: give the processes as"
            " --processes-per-host",
        )
    return processes
