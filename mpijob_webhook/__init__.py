"""`mpijob_webhook.check(job)` returns the verdict of `mpijob-webhook check`, for notebooks and tests."""

import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from mpijob_webhook.verdict import Verdict
from webhook import PROGRAM, __version__
from webhook.api import yaml
from webhook.cli import files, job_check, job_world
from webhook.cli.files import Manifest, ManifestError
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.policy.document import PolicyError
from webhook.policy.in_force import PolicySet, load_policies

__all__ = ["Verdict", "__version__", "check"]

Document = str | Path | Mapping[str, Any]
"""YAML or JSON as text, the Path of a file, or a mapping."""


def check(
    job: Any,
    policy: Document | None = None,
    cluster: Path | Iterable[Mapping[str, Any]] | None = None,
    *,
    namespace: str = "",
) -> Verdict:
    """The verdict on a job; ValueError for an unusable file, policy or object.

    `job` is a mapping, an object of a client library, YAML as text, or a Path. `policy` has one or several policies;
    None means the built-in policy. `cluster` is a file of `mpijob-webhook snapshot`, or objects of the cluster; None
    means an unknown cluster. Rules that need an unknown object do not reject the job. `namespace` is used if the job
    names no namespace.
    """
    try:
        world = _world(cluster)
        world.instead = None if policy is None else _policies(policy)
        manifest = _manifest(job)
    except (ManifestError, PolicyError, SnapshotError) as error:
        raise ValueError(str(error)) from None
    return Verdict(job_check.check(manifest, world, namespace=namespace or world.namespace), world)


def _world(cluster: Path | Iterable[Mapping[str, Any]] | None) -> job_world.JobWorld:
    if isinstance(cluster, Path):
        return job_world.of_file(cluster, policy_namespace=PROGRAM)
    if isinstance(cluster, str | Mapping):
        raise ValueError("cluster: must be the Path of a snapshot, or a list of objects")  # noqa: TRY004 - the same type as for an invalid text
    world = job_world.of_nothing()
    world.otherwise = "no cluster was given"
    if cluster is not None:
        world.cluster = Snapshot([_mapping("cluster", manifest) for manifest in cluster])
        world.otherwise = "not among the objects that were given"
    return world


def _policies(policy: Document) -> PolicySet:
    if isinstance(policy, Path):
        return load_policies(files.read(str(policy)), policy.stem)
    return load_policies(policy if isinstance(policy, str) else yaml.dump(_mapping("policy", policy)))


def _manifest(job: Any) -> Manifest:
    if isinstance(job, Path):
        manifests, errors = files.load([str(job)])
        if errors:
            raise errors[0]
    else:
        manifests = [manifest for document in _documents(job) for manifest in files.objects("the job", document)]
    jobs = [manifest for manifest in manifests if job_check.is_job(manifest)]
    if len(jobs) != 1:
        raise ValueError(f"it has {len(jobs) or 'no'} MPIJobs; check takes exactly one")
    return jobs[0]


def _documents(job: Any) -> list[Any]:
    if isinstance(job, str | bytes):
        try:
            documents = yaml.load_all(job)
        except yaml.YamlError as error:
            raise ValueError(str(error)) from None
        if len(documents) == 1 and isinstance(documents[0], str):
            raise ValueError("the job: is text without any key; a file is given as pathlib.Path(...)")
        return documents
    if isinstance(job, Mapping):
        return [_mapping("the job", job)]
    from kubernetes.client import ApiClient  # noqa: PLC0415 - takes a second, and most jobs are mappings

    return [ApiClient().sanitize_for_serialization(job)]


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: {value!r} is not a mapping")  # noqa: TRY004 - the same type as for an invalid text
    try:
        sent: dict[str, Any] = json.loads(json.dumps(dict(value), default=_sent, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name}: cannot be sent as JSON: {error}") from None
    return sent


def _sent(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is of type {type(value).__name__}")
