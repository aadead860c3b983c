"""The processes that SageMaker would have started on the machines of a training job.

Hyperparameters with JSON values tell SageMaker's training toolkit how to start the processes, and their number
(https://github.com/aws/sagemaker-training-toolkit, `params.py`, `runner.py`, `mpi.py`, `torch_distributed.py`).
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
    "its libraries are only in AWS's images and run only on AWS: use Horovod, or torch.distributed over NCCL"
)
_UNSUPPORTED: Final = {
    "sagemaker_distributed_dataparallel_enabled": f"smdistributed dataparallel cannot be converted: {_AWS_ONLY}",
    "mp_parameters": f"smdistributed modelparallel cannot be converted: {_AWS_ONLY}",
    "sagemaker_parameter_server_enabled": "parameter servers cannot become an MPI job: ranks do not serve parameters",
    "sagemaker_multi_worker_mirrored_strategy_enabled": "MultiWorkerMirroredStrategy cannot become an MPI job: its"
    " processes find each other by TF_CONFIG. Use Horovod",
    "sagemaker_pytorch_xla_multi_worker_enabled": (
        "PyTorch/XLA's own launcher cannot become an MPI job: use torch_distributed"
    ),
}
# The toolkit does not pass this hyperparameter to the program.
_TUNING_METRIC: Final = "_tuning_objective_metric"


class Way(Enum):
    """How processes are started."""

    MPI = "mpirun starts all processes"
    TORCHRUN = "torchrun starts the processes of each machine"
    EACH = "one process on each machine"


@dataclass(frozen=True, slots=True)
class Distribution:
    """The processes on the machines."""

    way: Way
    processes: int
    """Processes on each machine."""
    total: int
    options: tuple[str, ...] = ()
    """The user's options for mpirun."""


def field(name: str) -> str:
    return f"HyperParameters[{name}]"


def value(text: str) -> Any:
    try:
        decoded = json.loads(text)
        json.dumps(decoded, ensure_ascii=False).encode()  # fails for halves of surrogate pairs, which JSON may contain
    except (ValueError, RecursionError):
        return text
    return decoded


def of_user(parameters: Mapping[str, str]) -> dict[str, Any]:
    """The decoded hyperparameters, except those that only SageMaker uses."""
    internal = {name for name in parameters if name.startswith(PREFIX) or name == _TUNING_METRIC}
    return {name: value(text) for name, text in sorted(parameters.items()) if name not in internal}


def read(
    parameters: Mapping[str, str],
    default: int | None,
    hosts: int,
    report: Report,
    *,
    processes: int | None = None,
    starts_ranks: bool = False,
) -> Distribution:
    """`default` is the number of processes on each host; None if it depends on a device's setting. `processes` replaces
    the default. If `starts_ranks` is set, the container's command starts the ranks.
    """
    for name, why in _UNSUPPORTED.items():
        if parameters.get(name) and value(parameters[name]):
            raise ConversionError(field(name), why)
    default = processes or default
    if value(parameters.get(_MPI, "")) is True:
        return _mpi(parameters, default, hosts, report)
    for name in _TORCH:
        if value(parameters.get(name, "")) is True:
            default = _required(default)
            report.changed(
                field(name),
                f"mpirun starts torchrun on each worker, and torchrun starts {default} processes, which connect to the"
                " first worker; SageMaker's toolkit started them before",
            )
            return Distribution(Way.TORCHRUN, default, default * hosts)
    per_host = _required(default) if starts_ranks else processes or 1
    return Distribution(Way.EACH if per_host == 1 else Way.MPI, per_host, per_host * hosts)


def _mpi(parameters: Mapping[str, str], default: int | None, hosts: int, report: Report) -> Distribution:
    report.mapped(field(_MPI), "is mpirun in the launcher, with the options of SageMaker's toolkit")
    per_host, total = _number(parameters, _MPI_PROCESSES), _number(parameters, _MPI_ALL_PROCESSES)
    if per_host is not None:
        report.mapped(
            field(_MPI_PROCESSES), f"is {per_host} slots for each of {hosts} machines, and {per_host * hosts} ranks"
        )
    else:
        per_host = _required(default)
    if total is not None:
        report.mapped(field(_MPI_ALL_PROCESSES), "is the number of ranks")
    options = value(parameters.get(_MPI_OPTIONS, ""))
    if not isinstance(options, str):
        raise ConversionError(field(_MPI_OPTIONS), "is not a text of options")
    if options:
        report.mapped(field(_MPI_OPTIONS), "are options of mpirun in the launcher")
    return Distribution(Way.MPI, per_host, total or per_host * hosts, tuple(_for_mpirun(options.split())))


def _for_mpirun(words: list[str]) -> list[str]:
    """Replaces the toolkit's option --NCCL_DEBUG by mpirun's -x."""
    converted: list[str] = []
    rest = iter(words)
    for word in rest:
        name, _, level = word.partition("=")
        converted += ["-x", f"NCCL_DEBUG={level or next(rest, 'INFO')}"] if name == "--NCCL_DEBUG" else [word]
    return converted


def _number(parameters: Mapping[str, str], name: str) -> int | None:
    if not (text := parameters.get(name)) or (number := value(text)) is None:
        return None
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 10:
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= 100_000:
        raise ConversionError(field(name), f'"{text[:60]}" is not a number of processes')
    return number


def _required(processes: int | None) -> int:
    if processes is None:
        raise ConversionError(
            "ResourceConfig.InstanceType",
            "has Neuron devices with a number of cores that depends on their setting: set --processes-per-host",
        )
    return processes
