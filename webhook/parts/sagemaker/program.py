"""The launcher's command line, and the environment of the program.

Source of the variables SM_*:
https://github.com/aws/sagemaker-training-toolkit/blob/master/ENVIRONMENT_VARIABLES.md
"""

import json
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from webhook.api.placeholders import fill_in
from webhook.converters import secret_names
from webhook.converters.report import Report
from webhook.parts.sagemaker import distribution
from webhook.parts.sagemaker.distribution import Distribution, Way
from webhook.parts.sagemaker.machines import NEURON, Instance
from webhook.parts.sagemaker.request import TrainingJob

CODE: Final = "/opt/ml/code"
DATA: Final = "/opt/ml/input/data"
MODEL: Final = "/opt/ml/model"
OUTPUT: Final = "/opt/ml/output"
# Names of shell variables. Hyperparameters with other names are only in SM_HPS.
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PORT: Final = 7777
_PROGRAM_ENV: Final = "SAGEMAKER_PROGRAM"
_STARTERS: Final = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "horovodrun"})
# The toolkit's options for mpirun, except the options about hosts and network interfaces.
_OPTIONS: Final = ("-bind-to", "none", "-map-by", "slot", "-mca", "pml", "ob1", "-mca", "btl", "^openib")
_PASSED_ON: Final = ("LD_LIBRARY_PATH", "PATH")
_EXPANDED: Final = re.compile(r"\$(?=[$(])")


def literal(text: str) -> str:
    """Escapes $ for Kubernetes, which would replace $(NAME) by the value of a variable.

    SageMaker does not replace $(NAME). The variable's value could also end a shell's quotes.
    """
    return _EXPANDED.sub("$$", text)


def entry_point(request: TrainingJob) -> str:
    """The script or module that the toolkit runs, or empty."""
    parameters = request.hyper_parameters or {}
    program = distribution.value(parameters.get(distribution.PROGRAM, ""))
    return program if isinstance(program, str) and program else (request.environment or {}).get(_PROGRAM_ENV, "")


def starts_ranks(request: TrainingJob) -> bool:
    entry = request.algorithm_specification.container_entrypoint or [""]
    return entry[0].rpartition("/")[2] in _STARTERS


def command(
    request: TrainingJob, how: Distribution, report: Report, *, ranks: int, host: str, variables: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The launcher's command and args.

    `host` is torchrun's rendezvous host. `variables` are the names of the variables that ranks get.
    """
    algorithm = request.algorithm_specification
    container = [*(algorithm.container_entrypoint or ()), *(algorithm.container_arguments or ())]
    if starts_ranks(request):
        _report_command(request, report, "is the launcher's command: remove --host and its own hostfile from it")
        return container[:1], container[1:]
    words = ["--allow-run-as-root", "-np", str(ranks), *_OPTIONS, *how.options]
    for name in (*_PASSED_ON, *variables):
        words += ["-x", name]
    if container:
        _report_command(request, report, "is started by mpirun, and is no longer the first process of each machine")
        return ["mpirun"], [*words, *container]
    return ["mpirun"], [*words, *_toolkit(request, how, ranks, host, report)]


def _report_command(request: TrainingJob, report: Report, note: str) -> None:
    for name, words in (
        ("ContainerEntrypoint", request.algorithm_specification.container_entrypoint),
        ("ContainerArguments", request.algorithm_specification.container_arguments),
    ):
        if words:
            report.changed(f"AlgorithmSpecification.{name}", note)


def _toolkit(request: TrainingJob, how: Distribution, nodes: int, host: str, report: Report) -> list[str]:
    entry = entry_point(request)
    parameters = distribution.of_user(request.hyper_parameters or {})
    if not entry:
        if how.way is not Way.EACH:
            return [fill_in("the program that each rank runs, with its arguments")]
        report.changed(
            "AlgorithmSpecification.TrainingImage",
            "gets no program, so each rank runs the image's command train, as in SageMaker. It reads files in"
            " /opt/ml/input/config: create these files, or use a different command",
        )
        return ["train"]
    arguments = _arguments(parameters)
    module = not entry.endswith((".py", ".sh"))
    report.mapped(
        distribution.field(distribution.PROGRAM),
        f"is the program of each rank, in {CODE}, with hyperparameters as options",
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
    words = []
    for name, parameter in parameters.items():
        words += [f"--{name}" if len(name) > 1 else f"-{name}", _text(parameter)]
    return words


def _text(parameter: Any) -> str:
    if parameter is None:
        return ""
    if isinstance(parameter, dict):
        return ",".join(f"{key}={item}" for key, item in sorted(parameter.items()))
    return str(parameter)


def variables(request: TrainingJob, instance: Instance, hosts: Sequence[str], report: Report) -> dict[str, str]:
    parameters = distribution.of_user(request.hyper_parameters or {})
    environment = {
        "TRAINING_JOB_NAME": request.training_job_name,
        "SM_MODEL_DIR": MODEL,
        "SM_INPUT_DIR": "/opt/ml/input",
        "SM_INPUT_CONFIG_DIR": "/opt/ml/input/config",
        "SM_OUTPUT_DIR": OUTPUT,
        "SM_OUTPUT_DATA_DIR": f"{OUTPUT}/data",
        "SM_CHANNELS": _json(sorted(channel.channel_name for channel in request.input_data_config or ())),
        **{
            f"SM_CHANNEL_{channel.channel_name.upper()}": f"{DATA}/{channel.channel_name}"
            for channel in request.input_data_config or ()
        },
        "SM_HOSTS": _json(list(hosts)),
        "SM_MASTER_ADDR": hosts[0] if hosts else "",
        "SM_NUM_CPUS": str(instance.cpus),
        "SM_NUM_GPUS": str(instance.accelerators if instance.resource != NEURON else 0),
        "SM_HPS": _json(parameters),
        **{
            f"SM_HP_{name.upper()}": _in_variable(parameter)
            for name, parameter in parameters.items()
            if _NAME.fullmatch(name)
        },
    }
    if entry := entry_point(request):
        environment |= {"SM_USER_ENTRY_POINT": entry, "SM_MODULE_DIR": CODE}
    if request.resource_config.instance_type:
        environment["SM_CURRENT_INSTANCE_TYPE"] = request.resource_config.instance_type
    report.lost("SM_CURRENT_HOST", "differs on each worker, so it is not set: use HOSTNAME, or the rank")
    report.lost(
        "/opt/ml/input/config",
        "is not written (hyperparameters.json, inputdataconfig.json, resourceconfig.json): read SM_HPS, SM_CHANNELS and"
        " SM_HOSTS",
    )
    if parameters:
        report.mapped("HyperParameters", "are in SM_HPS and SM_HP_* of the launcher, which passes them to the ranks")
    if request.environment:
        report.mapped("Environment", "is in the env of the launcher, which passes it to the ranks")
    for place, settings in (("Environment", request.environment), ("HyperParameters", request.hyper_parameters)):
        for name in settings or ():
            if secret_names.is_secret_name(name):
                report.to_do(f"{place}[{name}]", secret_names.ADVICE)
    return environment | (request.environment or {})


def passed_on(environment: dict[str, str], options: Sequence[str]) -> list[str]:
    """The variables that mpirun must pass to the ranks, except variables that the user's `options` already pass."""
    by_user = {word.partition("=")[0] for before, word in pairwise(options) if before == "-x"}
    return [name for name in environment if name not in by_user]


def _in_variable(parameter: Any) -> str:
    if parameter is None:
        return ""
    return parameter if isinstance(parameter, str) else _json(parameter)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
