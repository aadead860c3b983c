"""Changes pod templates so that mpirun uses ssh. Older operators started ranks on workers with `kubectl exec`.

Affinities and spread constraints get the new labels of pods. Sources of the old labels: mpi-operator v0.3.0
`pkg/controllers/v1/mpi_job_controller.go` and training-operator `pkg/apis/kubeflow.org/v1/common_types.go`. Source of
the new labels: mpi-operator v0.8.0 `pkg/apis/kubeflow/v2beta1/constants.go`.
"""

import re
from typing import Any, Final

from webhook.api import sshd
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.pod import Container
from webhook.api.untyped import mapping
from webhook.converters import secret_names
from webhook.converters.fields import maps, nested, texts
from webhook.converters.report import Report

JOB_ROLE: Final = "training.kubeflow.org/job-role"
KEYS: Final = {
    "mpi_job_name": "training.kubeflow.org/job-name",
    "mpi_role_type": JOB_ROLE,
    "group_name": "training.kubeflow.org/operator-name",
    "training.kubeflow.org/replica-type": JOB_ROLE,
}
_VALUES: Final = {
    "group_name": {"kubeflow.org": "mpi-operator"},
    JOB_ROLE: {"master": "launcher"},
    "training.kubeflow.org/operator-name": {"mpijob-controller": "mpi-operator"},
}


def change_selectors(pod: dict[str, Any], where: str, report: Report) -> None:
    parts = {key: pod.get(key) for key in ("affinity", "topologySpreadConstraints")}
    for owner, outer in nested(parts, where):
        selector, path = mapping(owner.get("labelSelector")), f"{outer}.labelSelector"
        labels = selector.get("matchLabels")
        if isinstance(labels, dict):
            new = {KEYS.get(key, key): _value(key, value) for key, value in labels.items()}
            for key in labels:
                if new.get(key) != labels[key]:
                    label = KEYS.get(key, key)
                    report.mapped(f"{path}.matchLabels[{key}]", f"is {label}: {new[label]} now, as pods are labelled")
            selector["matchLabels"] = new
        for number, expression in enumerate(maps(selector, "matchExpressions")):
            _expression(expression, f"{path}.matchExpressions[{number}]", report)


def _expression(expression: dict[str, Any], path: str, report: Report) -> None:
    key, values = expression.get("key"), expression.get("values")
    if not isinstance(key, str):
        return
    expression["key"] = KEYS.get(key, key)
    if isinstance(values, list):
        expression["values"] = [_value(key, value) for value in values]
    if expression["key"] != key or expression.get("values") != values:
        report.mapped(path, f"selects by {expression['key']} now, as pods are labelled")


def _value(key: str, value: Any) -> Any:
    return _VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value


DELIVERY: Final = "kubectl-delivery"
KUBECTL_VOLUME: Final = "mpi-job-kubectl"
AGENT: Final = "OMPI_MCA_plm_rsh_agent"
_OLD_PROGRAM: Final = re.compile(r"kubexec\.sh|/opt/kube\b")
_HOSTS: Final = re.compile(r"discover_hosts\.sh|kubectl\b")
_OPTION: Final = re.compile(r"(?:^|\s)-?-g?mca\s+plm_rsh_agent\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)")
_MCA: Final = ("-mca", "--mca", "-gmca", "--gmca")
_SLEEP: Final = re.compile(r"\s*(?:exec\s+)?(?:/\S*/)?(?:sleep\s+[^\s;]+|tail\s+-f\s+/dev/null)\s*(?:;\s*)?")


def change(role: str, template: dict[str, Any], main: int, where: str, report: Report) -> None:
    """`main` is the index of the container with the ranks."""
    pod = template["spec"]
    path = f"{where}.spec"
    _remove(pod, "initContainers", DELIVERY, path, report)
    _remove(pod, "volumes", KUBECTL_VOLUME, path, report)
    for key in ("initContainers", "containers"):
        for number, container in enumerate(maps(pod, key)):
            container_path = f"{path}.{key}[{number}]"
            _remove(container, "volumeMounts", KUBECTL_VOLUME, container_path, report)
            _environment(container, container_path, report)
            _command_line(container, container_path, report)
    container = maps(pod, "containers")[main]
    if role == WORKER:
        _worker(container, f"{path}.containers[{main}]", report)
    account = pod.get("serviceAccountName")
    if role == LAUNCHER and account is not None:
        report.changed(f"{path}.serviceAccountName", "has an effect now; the old operator replaced it with its own")
    change_selectors(pod, path, report)


def _remove(owner: dict[str, Any], key: str, name: str, where: str, report: Report) -> None:
    items = owner.get(key)
    if not isinstance(items, list):
        return
    remaining = []
    for number, item in enumerate(items):
        if isinstance(item, dict) and item.get("name") == name:
            report.lost(f"{where}.{key}[{number}]", f"{name} delivered kubectl, which is no longer used")
        else:
            remaining.append(item)
    _set_items(owner, key, remaining)


def _set_items(owner: dict[str, Any], key: str, remaining: list[Any]) -> None:
    if remaining or not owner[key]:
        owner[key] = remaining
    else:
        del owner[key]


def _environment(container: dict[str, Any], where: str, report: Report) -> None:
    env = container.get("env")
    if not isinstance(env, list):
        return
    remaining = []
    for number, variable in enumerate(env):
        name, value = (variable.get("name"), variable.get("value")) if isinstance(variable, dict) else (None, None)
        if value and isinstance(name, str) and secret_names.is_secret_name(name):
            report.to_do(f"{where}.env[{number}]", f"{name[:60]} {secret_names.ADVICE}")
        old = isinstance(value, str) and _OLD_PROGRAM.search(value)
        if name == AGENT and old:
            report.lost(f"{where}.env[{number}]", f"{AGENT} named kubexec.sh; mpirun uses ssh without it")
            continue
        if name == AGENT or old:
            report.to_do(f"{where}.env[{number}]", "configures the old access to workers: mpirun uses ssh now")
        remaining.append(variable)
    _set_items(container, "env", remaining)


def _command_line(container: dict[str, Any], where: str, report: Report) -> None:
    for key in ("command", "args"):
        words = container.get(key)
        if not isinstance(words, list):
            continue
        remaining = _without_agent(words)
        if remaining != words:
            container[key] = remaining
            report.lost(f"{where}.{key}", "plm_rsh_agent is removed: mpirun uses ssh without it")
        line = " ".join(texts(container, key))
        if _OLD_PROGRAM.search(line):
            report.to_do(f"{where}.{key}", "uses kubexec.sh or /opt/kube, which no longer exist: use ssh")
        elif match := _HOSTS.search(line):
            report.to_do(
                f"{where}.{key}",
                f"uses {match[0]}: hosts have full names now, and the launcher has no permission to exec into pods",
            )


def _without_agent(words: list[Any]) -> list[Any]:
    remaining: list[Any] = []
    rest = iter(words)
    for word in rest:
        if word == "plm_rsh_agent" and remaining and remaining[-1] in _MCA:
            remaining.pop()
            next(rest, None)
        else:
            remaining.append(_OPTION.sub("", word) if isinstance(word, str) and "plm_rsh_agent" in word else word)
    return remaining


def _worker(container: dict[str, Any], where: str, report: Report) -> None:
    """The operator starts sshd if neither command nor args are set."""
    command, args = texts(container, "command"), texts(container, "args")
    if not command and args:
        del container["args"]
        report.lost(f"{where}.args", "had no effect without a command, and would prevent the start of sshd")
    elif command and _sleeps([*command, *args]):
        for key in ("command", "args"):
            if container.pop(key, None) is not None:
                report.lost(f"{where}.{key}", "the worker only waited; without a command it runs sshd")
    elif command and not sshd.starts(Container(command=command, args=args)):
        report.to_do(f"{where}.command", "must start sshd (/usr/sbin/sshd -De), or be removed: mpirun uses ssh now")


def _sleeps(words: list[str]) -> bool:
    shell = words[0].rpartition("/")[2] in {"sh", "bash", "dash"} and len(words) == 3 and words[1].endswith("c")
    return bool(_SLEEP.fullmatch(words[2] if shell else " ".join(words)))
