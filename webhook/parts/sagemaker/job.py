"""Converts a training job of SageMaker to an MPIJob."""

import csv
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from webhook.api import duration, names
from webhook.api.annotations import MIGRATED_FROM, NETWORK_POLICY
from webhook.api.mpijob import API_VERSION, LAUNCHER, WORKER
from webhook.api.placeholders import fill_in
from webhook.converters.report import Converted, Report
from webhook.parts.sagemaker import distribution, machines, program
from webhook.parts.sagemaker.distribution import Distribution, Way
from webhook.parts.sagemaker.machines import Network, Options
from webhook.parts.sagemaker.request import Tag, TrainingJob, read
from webhook.parts.sagemaker.storage import storage

# (end of a field's path, value that needs no conversion in this field)
_SAME_EFFECT: Final[tuple[tuple[str, Any], ...]] = (
    ("InputMode", "File"), ("CompressionType", "None"), ("CompressionType", "NONE"), ("RecordWrapperType", "None"),
    ("S3DataType", "S3Prefix"), ("S3DataDistributionType", "FullyReplicated"), ("VolumeSizeInGB", 0),
)  # fmt: skip
_SEPARATORS: Final = (".", "[")


@cache
def _no_counterpart() -> dict[str, str]:
    text = (get_data(__package__, "no_counterpart.csv") or b"").decode()
    return dict(row for row in csv.reader(text.splitlines()[1:]))


def settle(document: Mapping[str, Any], report: Report) -> None:
    """Report each field that has not been reported yet."""
    for path, value in _leaves(document, ""):
        if any(_covers(note.field, path) for note in report.notes):
            continue
        if value is False or any(path.endswith(end) and value == same for end, same in _SAME_EFFECT):
            report.mapped(path, "has the same effect without a setting")
            continue
        if parent := next((field for field in _no_counterpart() if _covers(field, path)), None):
            report.lost(parent, _no_counterpart()[parent])
        elif path.startswith("HyperParameters["):
            report.lost(path, "is for SageMaker's toolkit, which does not run")
        else:
            report.lost(path, "has no counterpart")


def _covers(field: str, path: str) -> bool:
    """Whether a note on `field` covers `path`. A note on HyperParameters covers the user's hyperparameters."""
    if field == "HyperParameters" and path.startswith("HyperParameters["):
        return bool(distribution.of_user({path.removeprefix("HyperParameters[").removesuffix("]"): ""}))
    return path == field or any(path.startswith(field + separator) for separator in _SEPARATORS)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            by_user = path in {"HyperParameters", "Environment"}
            yield from _leaves(item, f"{path}[{key}]" if by_user else f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    elif value is not None:
        yield path, value


# SageMaker's default time limit.
_DAY: Final = 86_400
# The default maximum of the rule `job-timeout`. SageMaker runs jobs for up to 28 days.
LONGEST: Final = 7 * _DAY
# Short enough for the names of a hundred workers.
_LONGEST_NAME: Final = names.DNS_LABEL_MAX_LENGTH - len("-worker-99")
_LAUNCHER: Final = {"cpu": "1", "memory": "2Gi"}
_ELASTIC_REGISTRY: Final = ".dkr.ecr"
_UNFIT: Final = re.compile("[^a-z0-9-]")


def convert(document: Mapping[str, Any], options: Options | None = None) -> Converted:
    """Returns the MPIJob; ConversionError if the training job cannot be converted. `document` is not changed."""
    options = options or Options()
    request, report = read(document), Report()
    name = _name(request.training_job_name, report)
    instance, count = machines.machines(request.resource_config, options, report)
    how = distribution.read(
        request.hyper_parameters or {},
        instance.processes,
        count,
        report,
        processes=options.processes_per_host,
        starts_ranks=program.starts_ranks(request),
    )
    hosts = [f"{name}-worker-{number}.{name}" for number in range(count)]
    network = machines.network(instance, how, options, report)
    env = {**network.variables, **program.variables(request, instance, hosts, report)}
    data = storage(request, options, report)
    amounts = machines.amounts(instance, network.adapters)
    computing = {"resources": {"requests": amounts, "limits": dict(amounts)}, "volumeMounts": data.mounts}
    pod = {"initContainers": data.fetching, "volumes": data.volumes}
    image = _image(request, options, report)
    launcher = _launcher(request, how, report, pods=count, host=hosts[0], env=env)
    launcher |= {"image": image, "resources": {"requests": dict(_LAUNCHER), "limits": dict(_LAUNCHER)}}
    spec = {
        "slotsPerWorker": 1 if how.way is Way.TORCHRUN else how.processes,
        "runPolicy": _run_policy(request, report),
        "mpiReplicaSpecs": {
            LAUNCHER: _replica(1, launcher, {}),
            WORKER: _replica(count, {"name": "worker", "image": image, **computing}, pod),
        },
    }
    metadata = _metadata(name, request, network, options, report)
    settle(document, report)
    return Converted({"apiVersion": API_VERSION, "kind": "MPIJob", "metadata": metadata, "spec": spec}, report)


def _name(written: str, report: Report) -> str:
    name = re.sub("-+", "-", _UNFIT.sub("-", written.lower())).strip("-")
    name = name if name[:1].isalpha() else f"job-{name}".rstrip("-")
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(written.encode()).hexdigest()[:6]
        name = f"{name[: _LONGEST_NAME - 7].rstrip('-')}-{digest}"
    if name == written:
        report.mapped("TrainingJobName", "is metadata.name")
    else:
        report.changed(
            "TrainingJobName", f"is {name} now: lower case, and short enough for the names of a hundred workers"
        )
    return name


def _image(request: TrainingJob, options: Options, report: Report) -> str:
    algorithm = request.algorithm_specification
    if algorithm.algorithm_name:
        report.lost(
            "AlgorithmSpecification.AlgorithmName", "an algorithm of SageMaker or its marketplace is not an image"
        )
    written = algorithm.training_image
    image = options.image or written or fill_in("an image with the algorithm")
    if written and options.image:
        report.changed("AlgorithmSpecification.TrainingImage", f"was {written[:200]}; --image replaces it")
    elif written:
        report.mapped("AlgorithmSpecification.TrainingImage", "is the image of launcher and workers")
    if _ELASTIC_REGISTRY in image:
        report.to_do(
            "AlgorithmSpecification.TrainingImage",
            "is in a registry of AWS: the nodes need a login there (imagePullSecrets), or a copy elsewhere (--image)",
        )
    report.to_do(
        "image",
        f'"{image[:200]}" needs Open MPI, sshd with StrictModes no and ssh with StrictHostKeyChecking no:'
        " SageMaker's images start train, and their toolkit starts sshd; the operator runs /usr/sbin/sshd -De as root",
    )
    if algorithm.training_input_mode not in {None, "File"}:
        report.changed(
            "AlgorithmSpecification.TrainingInputMode", f"was {algorithm.training_input_mode}; the data are files now"
        )
    return image


def _launcher(
    request: TrainingJob, how: Distribution, report: Report, *, pods: int, host: str, env: dict[str, str]
) -> dict[str, Any]:
    ranks = pods if how.way is Way.TORCHRUN else how.total
    passed_on = program.passed_on(env, how.options)
    command, args = program.command(request, how, report, ranks=ranks, host=host, variables=passed_on)
    return {
        "name": "launcher",
        "image": "",
        "command": [program.literal(word) for word in command],
        "args": [program.literal(word) for word in args],
        "env": [{"name": key, "value": program.literal(value)} for key, value in env.items()],
    }


def _replica(replicas: int, container: dict[str, Any], pod: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "initContainers": pod.get("initContainers"),
        "containers": [container],
        "volumes": pod.get("volumes"),
    }
    template = {"spec": {key: value for key, value in spec.items() if value}}
    return {"replicas": replicas, "restartPolicy": "Never", "template": template}


def _run_policy(request: TrainingJob, report: Report) -> dict[str, Any]:
    stopping, retries, spot = request.stopping_condition, request.retry_strategy, request.enable_managed_spot_training
    runtime = stopping.max_runtime_in_seconds if stopping else None
    waiting = stopping.max_wait_time_in_seconds if stopping else None
    is_deadline = "is spec.runPolicy.activeDeadlineSeconds, which counts from the start of the job"
    if spot and waiting:
        seconds, field = waiting, "StoppingCondition.MaxWaitTimeInSeconds"
        report.mapped("StoppingCondition.MaxWaitTimeInSeconds", is_deadline)
        report.changed(
            "StoppingCondition.MaxRuntimeInSeconds",
            "is replaced by MaxWaitTimeInSeconds: the deadline includes interruptions",
        )
    else:
        seconds, field = runtime or _DAY, "StoppingCondition.MaxRuntimeInSeconds"
        unset = "" if runtime else "was not set, which meant a day; the day "
        report.mapped("StoppingCondition.MaxRuntimeInSeconds", f"{unset}{is_deadline}")
        if waiting:
            report.lost("StoppingCondition.MaxWaitTimeInSeconds", "is for spot instances, which were not requested")
    if seconds > LONGEST:
        report.to_do(
            field,
            f"is {duration.spell(seconds)}, and the rule job-timeout rejects more than {duration.spell(LONGEST)} by"
            " default: ask for a larger max in the policy of your namespace, or ask a user who may exempt the job"
            " (training.openshift.io/exempt: job-timeout)",
        )
    policy: dict[str, Any] = {"cleanPodPolicy": "Running", "activeDeadlineSeconds": seconds}
    if retries:
        policy["backoffLimit"] = retries.maximum_retry_attempts
        report.changed("RetryStrategy", "is spec.runPolicy.backoffLimit, which counts failures of the program too")
    elif not spot:
        policy["backoffLimit"] = 0
    if spot:
        report.changed(
            "EnableManagedSpotTraining",
            "has no counterpart: give workers the node selector and toleration of spot nodes. A job that loses such a"
            f" node is retried {policy.get('backoffLimit', 6)} times, from its last checkpoint",
        )
    return policy


def _metadata(name: str, request: TrainingJob, network: Network, options: Options, report: Report) -> dict[str, Any]:
    labels: dict[str, str] = {}
    annotations = {MIGRATED_FROM: "sagemaker", **network.annotations}
    if request.enable_network_isolation:
        annotations[NETWORK_POLICY] = "isolated"
        report.changed(
            "EnableNetworkIsolation", f"is the annotation {NETWORK_POLICY}: isolated, if the cluster supports it"
        )
    for number, tag in enumerate(request.tags or ()):
        for kind, into in _place(tag, labels, annotations):
            into[tag.key] = tag.value
            report.mapped(f"Tags[{number}]", f"is a {kind} of the job")
    metadata: dict[str, Any] = {"name": name}
    if options.namespace:
        metadata["namespace"] = options.namespace
    if labels:
        metadata["labels"] = labels
    return {**metadata, "annotations": annotations}


def _place(tag: Tag, labels: dict[str, str], annotations: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """(kind, mapping) for the label or annotation of a tag; nothing for a tag that can be neither.

    Tags with a prefix are left out, because they may have a different meaning in the cluster.
    """
    if "/" in tag.key or names.label_key_problem(tag.key):
        return
    if names.label_value_problem(tag.value):
        yield "annotation", annotations
    else:
        yield "label", labels
