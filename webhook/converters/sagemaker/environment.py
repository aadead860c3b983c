"""The variables that a program finds on SageMaker, and looks for: SM_* and those of the request.

https://github.com/aws/sagemaker-training-toolkit/blob/master/ENVIRONMENT_VARIABLES.md
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from webhook.converters import secrets
from webhook.converters.report import Report
from webhook.converters.sagemaker import distribution, program
from webhook.converters.sagemaker.distribution import Distribution
from webhook.converters.sagemaker.instances import NEURON, Instance
from webhook.converters.sagemaker.request import TrainingJob

DATA: Final = "/opt/ml/input/data"
MODEL: Final = "/opt/ml/model"
OUTPUT: Final = "/opt/ml/output"
# Others cannot be read by a shell; they are in SM_HPS alone.
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def variables(
    request: TrainingJob, how: Distribution, instance: Instance, hosts: Sequence[str], report: Report
) -> dict[str, str]:
    """By name. `instance` is what a worker has, `hosts` are those of the workers."""
    parameters = distribution.of_user(request.hyper_parameters or {})
    found = {
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
        **{f"SM_HP_{name.upper()}": _text(written) for name, written in parameters.items() if _NAME.fullmatch(name)},
    }
    if entry := program.entry_point(request):
        found |= {"SM_USER_ENTRY_POINT": entry, "SM_MODULE_DIR": program.CODE}
    if request.resource_config.instance_type:
        found["SM_CURRENT_INSTANCE_TYPE"] = request.resource_config.instance_type
    report.lost("SM_CURRENT_HOST", "differs on each worker, so it is not set: take HOSTNAME, or the rank")
    report.lost(
        "/opt/ml/input/config",
        "is not written (hyperparameters.json, inputdataconfig.json, resourceconfig.json): read SM_HPS, SM_CHANNELS and"
        " SM_HOSTS",
    )
    if parameters:
        report.mapped("HyperParameters", "are in SM_HPS and SM_HP_* of the launcher, which hands them on to the ranks")
    if request.environment:
        report.mapped("Environment", "is in the env of the launcher, which hands it on to the ranks")
    for place, written in (("Environment", request.environment), ("HyperParameters", request.hyper_parameters)):
        for name in written or ():
            if secrets.is_named_so(name):
                report.to_do(f"{place}[{name}]", secrets.ADVICE)
    return found | (request.environment or {})


def handed_on(found: dict[str, str], options: Sequence[str]) -> list[str]:
    """Those that mpirun is to pass on to the ranks, but for what `options` sets."""
    by_user = {word.partition("=")[0] for before, word in pairwise(options) if before == "-x"}
    return [name for name in found if name not in by_user]


def _text(written: Any) -> str:
    if written is None:
        return ""
    return written if isinstance(written, str) else _json(written)


def _json(written: Any) -> str:
    return json.dumps(written, sort_keys=True, separators=(",", ":"))
