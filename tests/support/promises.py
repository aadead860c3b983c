"""Properties that every injection must have for any job. `keep` checks these properties."""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jsonpatch

from tests.support.written_forms import faults as forms_faults
from webhook.admission.pipelines import Decision
from webhook.api import document, mpijob
from webhook.api.annotations import INJECTED
from webhook.api.networks import NETWORKS
from webhook.api.shape import ShapeError
from webhook.api.sshd import WAIT_CONTAINER
from webhook.api.untyped import at

WARNING_LENGTH = 120
IDS_LENGTH = 256
# The keys of list items in the schema of pods. The key of other lists is `name`.
KEYS = {"volumeMounts": "mountPath", "ports": "containerPort", "tolerations": None}
# Defaults that the API server sets before admission. They cannot be distinguished from a user's values.
FILLED_IN: dict[tuple[str, ...], object] = {
    ("spec", "launcherCreationPolicy"): "AtStartup",
    ("spec", "runPolicy", "suspend"): False,
}
# The fields that decide what a container runs. No injection changes them, or adds a container except WAIT_CONTAINER.
RUNS = ("name", "image", "command", "args", "workingDir")
# Capabilities that injections add: IPC_LOCK in a namespace without a Pod Security level, NET_BIND_SERVICE together with
# `drop: [ALL]`.
GRANTED = ("IPC_LOCK", "NET_BIND_SERVICE")
# Fields that give a pod access to its node.
GRANTS = {"hostNetwork", "hostPID", "hostIPC", "hostPath", "privileged", "allowPrivilegeEscalation"}


def keep(job: Any, decision: Decision, again: Callable[[Any], Decision]) -> None:
    """Check all properties of the decision on `job`, a JSON value. `again` mutates a job with the same settings."""
    raw = json.dumps(job).encode()
    assert decision.allowed
    assert decision.skipped.startswith("schema: ") == (not readable(raw))
    if decision.skipped:
        assert (decision.patch, decision.notes, decision.document) == ([], [], None)
        return
    before, patch = json.loads(raw), patch_of(decision)
    after = jsonpatch.JsonPatch(patch).apply(before)
    without_status = {key: value for key, value in after.items() if key != "status"}  # injections do not see the status
    assert document.object_of(json.dumps(without_status).encode()) == decision.document
    assert {operation["op"] for operation in patch} <= {"add"}
    listed = [operation for operation in patch if is_list_of_injections(operation)]
    assert listed == patch[len(decision.authors) :]
    assert len(listed) <= bool(decision.patch), "one annotation lists the injections"
    assert survives(without_list(without_defaults(before)), after)
    assert runs(before) == runs(after)
    assert forms_faults(decision) == []
    assert list(grants(before)) == list(grants(after)), "no injection gives a pod access to its node"
    assert_no_new_duplicates(before, after)
    assert readable(json.dumps(after).encode())
    assert again(after).patch == [], "a second mutation adds nothing"
    assert all(fits(warning) and warning.isprintable() for warning in decision.warnings)


def fits(warning: str) -> bool:
    """Whether a warning is as short as Kubernetes recommends. The list of all injections may be longer."""
    return len(warning.encode()) <= (IDS_LENGTH if warning.startswith("injected: ") else WARNING_LENGTH)


def is_list_of_injections(operation: Any) -> bool:
    """Whether this operation writes the annotation with the list of injections, or all annotations."""
    return operation["path"].endswith("training.openshift.io~1injected") or INJECTED in json.dumps(operation["value"])


def without_list(job: Any) -> Any:
    annotations = ((job or {}).get("metadata") or {}).get("annotations") if isinstance(job, dict) else None
    if not annotations:
        return job
    kept = {key: value for key, value in annotations.items() if key != INJECTED}
    return {**job, "metadata": {**job["metadata"], "annotations": kept}}


def readable(raw: bytes) -> bool:
    """Whether the wire types can decode the job."""
    try:
        mpijob.decode(raw)
    except ShapeError:
        return False
    return True


def patch_of(decision: Decision) -> Any:
    """The patch in the response to the API server."""
    response = decision.response("u-1")
    assert (response.patch is None) == (response.patch_type is None) == (not decision.patch)
    return json.loads(response.patch) if response.patch else []


def without_defaults(job: Any, *, kept_in: Any = None) -> Any:
    """The job with null instead of possible defaults of the API server, except defaults that `kept_in` also has."""
    job = copy.deepcopy(job)
    for (*parents, last), default in FILLED_IN.items():
        parent, kept = job, kept_in
        for key in parents:
            parent, kept = (it.get(key) if isinstance(it, dict) else None for it in (parent, kept))
        if isinstance(kept, dict) and kept.get(last) == default:
            continue
        if isinstance(parent, dict) and parent.get(last) == default and type(parent[last]) is type(default):
            parent[last] = None
    return job


def survives(before: Any, after: Any) -> bool:
    """Whether `after` has all values of `before` except null. Lists may have additional items."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            (key == NETWORKS and networks_survive(value, after.get(key))) or survives(value, after.get(key))
            for key, value in before.items()
        )
    if isinstance(before, list):
        return isinstance(after, list) and len(after) >= len(before) and all(map(survives, before, after))
    return before is None or (type(before) is type(after) and before == after)


def networks_survive(before: Any, after: Any) -> bool:
    """Whether the annotation still begins with the networks that it had, in the same notation."""
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if before.lstrip().startswith("["):
        had, has = json.loads(before), json.loads(after)
    else:
        had, has = ([item.strip() for item in text.split(",") if item.strip()] for text in (before, after))
    return bool(has[: len(had)] == had)


def runs(job: Any) -> list[Any]:
    """The image, command and arguments of each container."""
    return [
        [
            {field: container.get(field) for field in RUNS}
            for container in pod.get(kind) or ()
            if container.get("name") != WAIT_CONTAINER
        ]
        for replica in ((job.get("spec") or {}).get("mpiReplicaSpecs") or {}).values()
        for pod in [((replica or {}).get("template") or {}).get("spec") or {}]
        for kind in ("containers", "initContainers")
    ]


def grants(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields that give pods access to their node, and added capabilities."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key in GRANTS and item:
            yield key, item
        elif key == "add" and isinstance(item, list):
            yield from ((key, each) for each in item if each not in GRANTED)
        else:
            yield from grants(item)


def assert_no_new_duplicates(before: Any, after: Any) -> None:
    """Check that no list has new items with equal keys, because the API server would reject the job."""
    before_counts = dict(lists(before))
    for path, items in lists(after):
        key = KEYS.get(str(path[-1]), "name")
        counted, had = keyed(items, key), keyed(before_counts.get(path, []), key)
        assert all(count == had[name] or (count == 1 and not had[name]) for name, count in counted.items()), path


def has_valid_pods(job: Any) -> bool:
    """Whether each replica has a template, and no list has two containers with one name. Other jobs are rejected."""
    replicas = at(job, "spec", "mpiReplicaSpecs")
    if not all(at(replicas, name).get("template") for name in replicas):
        return False
    pods = (items for path, items in lists(job) if path[-1] in {"containers", "initContainers"})
    return all(count == 1 for items in pods for count in keyed(items, "name").values())


def lists(value: Any, path: tuple[str | int, ...] = ("",)) -> Iterator[tuple[tuple[str | int, ...], list[Any]]]:
    if isinstance(value, list):
        yield path, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from lists(item, (*path, key))


def keyed(items: list[Any], key: str | None) -> Counter[str]:
    """The number of items for each key. With None, whole items are compared."""
    return Counter(
        json.dumps(item if key is None else item[key], sort_keys=True)
        for item in items
        if isinstance(item, dict) and (key is None or key in item)
    )
