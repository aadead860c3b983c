"""What a cluster holds, in a file that the other commands take for the cluster."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec

from webhook import PROGRAM
from webhook.api import mpijob, yaml
from webhook.cli.job_world import POLICIES
from webhook.cli.terminal import caution, fail, faint, printable
from webhook.client import calls
from webhook.client.access import Access
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import KubernetesObject, get, listed
from webhook.client.reading import read
from webhook.cluster.resource import WatchedPlace
from webhook.policy import store
from webhook.policy.store import REMEMBERED

INCOMPLETE: Final = 1
"""The exit code of a snapshot in which something is missing."""

# No verdict depends on the rest of the metadata. The annotations show what kubectl applied.
KEPT: Final = ("name", "namespace", "labels", "annotations")
HEADING: Final = f"""\
# What rules look at in a cluster, for `{PROGRAM} check --cluster` and `{PROGRAM} policy ... --cluster`.
# The first object says what was read completely: what is missing there does not exist. Jobs stand here as they are
# stored, with their environment: show this file to nobody who may not see them.
"""


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """What was read; `problems` say what could not be."""

    documents: Sequence[KubernetesObject]
    problems: Sequence[str]

    def text(self) -> Iterator[str]:
        """The content of the file, in pieces. The same cluster gives the same text."""
        yield HEADING
        yield from map(yaml.dump_document, self.documents)


def run(output: Path | None, **where: Any) -> int:
    """Take a snapshot and write it, to standard output for None; the exit code. For `where` see `take`."""

    def tell(line: str) -> None:
        click.echo(faint(printable(line)), err=True)

    try:
        taken = asyncio.run(take(**where, tell=tell))
        if output is None:
            for piece in taken.text():
                click.echo(piece, nl=False)
        else:
            write(output, taken.text())
    except ClusterError as error:
        fail(error)
    except OSError as error:
        fail(f"cannot write {output}: {error.strerror}")
    for problem in taken.problems:
        click.echo(f"{caution('warning')}: {printable(problem)}", err=True)
    return INCOMPLETE if taken.problems else 0


async def take(
    access: Access,
    *,
    policy_namespace: str,
    kueue_namespace: str,
    namespaces: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> SnapshotFile:
    """Read a cluster, in all namespaces or in these; ClusterError when it cannot be used."""
    api = await calls.connect(access)
    places = {WatchedPlace.OWN: policy_namespace, WatchedPlace.KUEUE: kueue_namespace}
    try:
        reading = await read(api, places=places, namespaces=namespaces, more={"MPIJob": stored}, tell=tell)
        try:
            policies = await _policies(api, policy_namespace)
        except ApiError as error:
            reading.head.unknown[POLICIES] = "forbidden" if error.status == 403 else str(error)
            reading.problems.append(f"nothing is known of policies: {error}")
        else:
            for policy in policies:
                reading.add(policy)
            tell(f"policies: {len(policies)}")
    finally:
        await api.close()
    return SnapshotFile(reading.documents(), reading.problems)


def write(path: Path, pieces: Iterable[str]) -> None:
    """Put a file in place whole or not at all, for its owner alone; OSError when that is not possible."""
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            file.writelines(pieces)
            file.flush()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


async def _policies(api: Client, namespace: str) -> list[KubernetesObject]:
    """The policy ConfigMaps, and what the service remembers of them: nothing else of a ConfigMap is kept."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"
    found = await listed(api, path, labelSelector=f"{store.LABEL}=true")
    policies = [_configmap(each, {store.LABEL: "true"}, keys=(store.KEY,)) for each in found]
    remembered = await get(api, f"{path}/{REMEMBERED}")
    return policies + ([_configmap(remembered, {}, keys=remembered.get("data") or ())] if remembered else [])


def _configmap(found: KubernetesObject, labels: Mapping[str, str], *, keys: Iterable[str]) -> KubernetesObject:
    kept = ("name", "namespace", "resourceVersion")
    metadata = {key: found["metadata"][key] for key in kept if key in found["metadata"]} | {"labels": dict(labels)}
    data = {key: found["data"][key] for key in keys if key in (found.get("data") or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def stored(job: KubernetesObject) -> KubernetesObject:
    """What is kept of a job besides what rules look at: a change to it is judged by all of its spec."""
    mpijob.decode(msgspec.json.encode(job))  # whoever cannot read it could not read the file
    return {"metadata": {key: job["metadata"][key] for key in KEPT if key in job["metadata"]}, "spec": job["spec"]}
