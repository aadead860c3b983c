"""Runs the demonstration: starts the real service, and sends reviews to it, as the API server does."""

import asyncio
import copy
import io
import ssl
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import takewhile
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
import click
import msgspec

from webhook import PROGRAM
from webhook.cli import files as manifests
from webhook.cli import injected
from webhook.cli.files import Manifest, ManifestError
from webhook.cli.terminal import bad, caution, counted, faint, good, heading, printable
from webhook.server.log import make_log
from webhook.server.service import ServeSettings, Service, running
from webhook.server.telemetry import Telemetry

# The first folder exists in a checkout, the second in an installed package.
EXAMPLES: Final = (Path(__file__).parents[2] / "manifests" / "examples", Path(__file__).parents[1] / "examples")
BAD: Final = "bad-"
NAMESPACE: Final = "default"
LOOPBACK: Final = ("127.0.0.1", 0)
NEXT_STEPS: Final = f"""\
What to try next:
  {PROGRAM} demo job.yaml         your job, with all injected fields
  {PROGRAM} check job.yaml        only the verdict; exit code 0, 1 or 2 for scripts
  {PROGRAM} explain worker-count  why a rule exists, and how a policy tunes it"""


class DemoError(Exception):
    """The service did not judge a job."""


def show(files: Sequence[str]) -> bool:
    """Show the jobs in `files`, or the examples. Returns False if an example had an unexpected verdict.

    ManifestError if the files have no job; DemoError or StartError if the service fails.
    """
    jobs = _jobs(files or [str(path) for path in _examples()])
    admitted = asyncio.run(_show(jobs, short=not files))
    outcome = f"{len(admitted)} admitted, {len(jobs) - len(admitted)} rejected"
    click.echo("\n" + heading(f"{counted(len(jobs), 'job')}: {outcome}"))
    surprises = [] if files else [job for job in jobs if (job in admitted) == Path(job.source).name.startswith(BAD)]
    for job in surprises:
        click.echo(f"{bad('unexpected')}: {printable(job.source)} was {'admitted' if job in admitted else 'rejected'}")
    click.echo(NEXT_STEPS)
    return not surprises


def _examples() -> list[Path]:
    folder = next(folder for folder in EXAMPLES if folder.is_dir())
    return sorted(folder.glob("*.yaml"), key=lambda path: (not path.name.startswith(BAD), path.name))


def _jobs(files: Sequence[str]) -> list[Manifest]:
    objects, errors = manifests.load(files)
    if errors:
        raise errors[0]
    jobs = [manifest for manifest in objects if manifest.kind == "MPIJob"]
    if not jobs:
        raise ManifestError(f"no MPIJob in {', '.join(files)}")
    return jobs


async def _show(jobs: Sequence[Manifest], *, short: bool) -> list[Manifest]:
    """Send each job to the service, print the outcome, and return the admitted jobs.

    With `short`, only the first admitted and the first rejected job get more than a line.
    """
    settings = ServeSettings(listen=LOOPBACK, ops_listen=LOOPBACK, drain_seconds=0, ssh_keys_ready=0)
    admitted, shown_verdicts = [], set[bool]()
    async with running(settings, Telemetry(make_log(io.BytesIO()))) as service, _client(service) as client:
        click.echo(f"The webhook listens on {service.url}. It gets each job as the API server would send it.")
        for job in jobs:
            before = job.created_in(job.namespace or NAMESPACE)
            mutation = await _post(client, "/mutate-mpijob", job, before)
            patch = msgspec.json.decode(b64decode(mutation["patch"])) if "patch" in mutation else []
            validation = await _post(client, "/validate-mpijob", job, apply(before, patch))
            if validation["allowed"]:
                admitted.append(job)
            warnings = [*mutation.get("warnings", []), *validation.get("warnings", [])]
            again = short and validation["allowed"] in shown_verdicts
            lines = [*_outcome(job, warnings, patch, validation, short=short, again=again)]
            shown_verdicts.add(validation["allowed"])
            click.echo(f"{Path(job.source).name}: {lines[-1]}" if again else "\n" + "\n".join(lines))
    return admitted


def _client(service: Service) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cadata=(service.ca_pem or b"").decode())
    return aiohttp.ClientSession(service.url, connector=aiohttp.TCPConnector(ssl=context))


async def _post(client: aiohttp.ClientSession, path: str, job: Manifest, document: Mapping[str, Any]) -> dict[str, Any]:
    group, _, version = job.api_version.rpartition("/")
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(uuid4()),
            "kind": {"group": group, "version": version, "kind": job.kind},
            "resource": {"group": group, "version": version, "resource": "mpijobs"},
            "operation": "CREATE",
            "name": job.name,
            "namespace": job.namespace or NAMESPACE,
            "userInfo": {"username": "demo", "groups": ["system:authenticated"]},
            "object": document,
            "oldObject": None,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    }
    body, headers = io.BytesIO(msgspec.json.encode(review)), {"Content-Type": "application/json"}
    async with client.post(path, params={"timeout": "5s"}, data=body, headers=headers) as reply:
        if reply.status != HTTPStatus.OK:
            raise DemoError(f"{job.source}: the webhook answered {reply.status}: {(await reply.text()).strip()}")
        response: dict[str, Any] = msgspec.json.decode(await reply.read())["response"]
        return response


def apply(document: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Apply a JSON patch with `add` operations. The webhook writes no other operations."""
    result: dict[str, Any] = copy.deepcopy(dict(document))
    for operation in operations:
        *parents, last = (token.replace("~1", "/").replace("~0", "~") for token in operation["path"].split("/")[1:])
        target: Any = result
        for token in parents:
            target = target[int(token)] if isinstance(target, list) else target[token]
        value = copy.deepcopy(operation["value"])  # a later operation may change the value
        if isinstance(target, list):
            target.insert(len(target) if last == "-" else int(last), value)
        else:
            target[last] = value
    return result


def _outcome(
    job: Manifest,
    warnings: Sequence[str],
    patch: Sequence[Mapping[str, Any]],
    validation: Mapping[str, Any],
    *,
    short: bool,
    again: bool,
) -> Iterator[str]:
    """The comment at the start of the file, the output of kubectl, and the injections.

    With `again`, the caller prints only the last line.
    """
    name = manifests.STDIN if job.source == manifests.STDIN_TITLE else printable(Path(job.source).name)
    comment = takewhile(lambda line: line.startswith("#"), job.content.decode(errors="replace").splitlines())
    if not short:
        yield heading(f"== {name}")
        yield from (faint(printable(line)) for line in comment)
    yield f"$ kubectl apply -f {name}"
    if validation["allowed"] or not short:
        yield from (f"{caution('Warning:')} {printable(warning)}" for warning in warnings)
    if validation["allowed"]:
        yield good(f"mpijob.kubeflow.org/{printable(job.title)} created")
        if not short:
            yield from ("", "Injected into the job in the cluster:")
            yield from (f"  {line}" for line in injected.additions(patch))
        return
    # kubectl's format for a status with causes (`StatusErr` in kubectl `pkg/cmd/util/helpers.go`).
    details = validation["status"]["details"]
    causes = [printable(f"{cause['field']}: {cause['message']}") for cause in details["causes"]]
    head = bad(printable(f'The {details["kind"]} "{details["name"]}" is invalid:'))
    whole = [f"{head} {causes[0]}"] if len(causes) == 1 else [head, *(f"* {cause}" for cause in causes)]
    yield from causes[:1] if again else whole
