"""Properties that hold after any injections to any job: `keep` checks them."""

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

WARNING_LENGTH = 120
IDS_LENGTH = 256
# The keys of lists in the schema of pods; `name` for all others.
KEYS = {"volumeMounts": "mountPath", "ports": "containerPort", "tolerations": None}
# Defaults that the API server fills in before admission: they are indistinguishable from a user's values.
FILLED_IN: dict[tuple[str, ...], object] = {
    ("spec", "launcherCreationPolicy"): "AtStartup",
    ("spec", "runPolicy", "suspend"): False,
}
# No injection changes what runs, or adds a program, except the launcher's wait for its workers.
RUNS = ("name", "image", "command", "args", "workingDir")
# The first in a namespace without a Pod Security level, the second next to `drop: [ALL]`.
GRANTED = ("IPC_LOCK", "NET_BIND_SERVICE")
# Fields that give a pod access to its node.
GRANTS = {"hostNetwork", "hostPID", "hostIPC", "hostPath", "privileged", "allowPrivilegeEscalation"}


def keep(job: Any, decision: Decision, again: Callable[[Any], Decision]) -> None:
    """Check every property of the decision on `job`, a JSON value; `again` mutates another one in the same way."""
    raw = json.dumps(job).encode()
    assert decision.allowed
    assert decision.skipped.startswith("schema: ") == (not readable(raw))
    if decision.skipped:
        assert (decision.patch, decision.notes, decision.document) == ([], [], None)
        return
    before, patch = json.loads(raw), patch_of(decision)
    after = jsonpatch.JsonPatch(patch).apply(before)
    without_status = {key: value for key, value in after.items() if key != "status"}  # invisible to injections
    assert document.object_of(json.dumps(without_status).encode()) == decision.document
    assert {operation["op"] for operation in patch} <= {"add"}
    listed = [operation for operation in patch if is_list_of_injections(operation)]
    assert listed == patch[len(decision.authors) :]
    assert len(listed) <= bool(decision.patch), "one annotation lists what was injected"
    assert survives(without_list(without_defaults(before)), after)
    assert runs(before) == runs(after)
    assert forms_faults(decision) == []
    assert list(grants(before)) == list(grants(after)), "no injection opens the node to a pod"
    assert_no_new_duplicates(before, after)
    assert readable(json.dumps(after).encode())
    assert again(after).patch == [], "injected twice, nothing is added the second time"
    assert all(fits(warning) and warning.isprintable() for warning in decision.warnings)


def fits(warning: str) -> bool:
    """Whether a warning is as short as Kubernetes recommends; a line with the ids of all injections may be longer."""
    return len(warning.encode()) <= (IDS_LENGTH if warning.startswith("injected: ") else WARNING_LENGTH)


def is_list_of_injections(operation: Any) -> bool:
    """Whether this operation writes the list of injections, or the mapping that contains it."""
    return operation["path"].endswith("training.openshift.io~1injected") or INJECTED in json.dumps(operation["value"])


def without_list(job: Any) -> Any:
    """The job without the list of injections."""
    annotations = ((job or {}).get("metadata") or {}).get("annotations") if isinstance(job, dict) else None
    if not annotations:
        return job
    kept = {key: value for key, value in annotations.items() if key != INJECTED}
    return {**job, "metadata": {**job["metadata"], "annotations": kept}}


def readable(raw: bytes) -> bool:
    """Whether the wire types can decode it."""
    try:
        mpijob.decode(raw)
    except ShapeError:
        return False
    return True


def patch_of(decision: Decision) -> Any:
    """The patch as the API server gets it."""
    response = decision.response("u-1")
    assert (response.patch is None) == (response.patch_type is None) == (not decision.patch)
    return json.loads(response.patch) if response.patch else []


def without_defaults(job: Any, *, kept_in: Any = None) -> Any:
    """The job with null in place of each default that the API server may have filled in, except those in `kept_in`."""
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
    """Whether everything in `before` but null is in `after`; lists may have grown."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            (key == NETWORKS and networks_survive(value, after.get(key))) or survives(value, after.get(key))
            for key, value in before.items()
        )
    if isinstance(before, list):
        return isinstance(after, list) and len(after) >= len(before) and all(map(survives, before, after))
    return before is None or (type(before) is type(after) and before == after)


def networks_survive(before: Any, after: Any) -> bool:
    """Whether a text that lists networks lists more now, in its own notation, and without duplicates."""
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if before.lstrip().startswith("["):
        had, has = json.loads(before), json.loads(after)
    else:
        had, has = ([item.strip() for item in text.split(",") if item.strip()] for text in (before, after))
    return bool(has[: len(had)] == had)


def runs(job: Any) -> list[Any]:
    """What each container of the job runs."""
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
    """Fields that open the node to a pod, and added capabilities."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key in GRANTS and item:
            yield key, item
        elif key == "add" and isinstance(item, list):
            yield from ((key, each) for each in item if each not in GRANTED)
        else:
            yield from grants(item)


def assert_no_new_duplicates(before: Any, after: Any) -> None:
    """No list has a second item with the same key: the API server rejects a job for it."""
    known = dict(lists(before))
    for path, items in lists(after):
        key = KEYS.get(str(path[-1]), "name")
        counted, had = keyed(items, key), keyed(known.get(path, []), key)
        assert all(count == had[name] or (count == 1 and not had[name]) for name, count in counted.items()), path


def has_distinct_containers(job: Any) -> bool:
    """Whether the containers of each pod have different names: the API server stores no other job."""
    pods = (items for path, items in lists(job) if path[-1] in {"containers", "initContainers"})
    return all(count == 1 for items in pods for count in keyed(items, "name").values())


def lists(value: Any, path: tuple[str | int, ...] = ("",)) -> Iterator[tuple[tuple[str | int, ...], list[Any]]]:
    """(path, list) of every list in `value`."""
    if isinstance(value, list):
        yield path, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from lists(item, (*path, key))


def keyed(items: list[Any], key: str | None) -> Counter[str]:
    """How often each key is in the list; with None the whole items are compared."""
    return Counter(
        json.dumps(item if key is None else item[key], sort_keys=True)
        for item in items
        if isinstance(item, dict) and (key is None or key in item)
    )
