"""The commands `doctor` and `certs status`: they parse, call, print. What a command needs is imported when it runs."""

# ruff: noqa: PLC0415 - as in webhook.cli.main
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from webhook.cli.serve import Address, AddressType
from webhook.cli.terminal import bad, caution, fail, faint, good, heading, printable
from webhook.installation.doctor.diagnosis import Diagnosis, Severity

if TYPE_CHECKING:
    from webhook.client.calls import Client

T = TypeVar("T")
UNSET: Final[dict[str, Any]] = {"default": "", "show_default": False}
FILE: Final = click.Path(path_type=Path, dir_okay=False)
OPTIONS: Final = (
    click.option("--kubeconfig", type=FILE, help="The cluster. Default: as kubectl."),
    click.option("--context", help="The context of the kubeconfig. Default: its current one."),
    click.option("--policy-namespace", metavar="NAMESPACE", default="mpijob-webhook", help="Where the service is."),
    click.option("--service", metavar="NAME", default="mpijob-webhook", help="Its Service."),
    click.option(
        "--ca-secret",
        metavar="NAME",
        default="",
        show_default=False,
        help="Its CA Secret. Default: as in the Deployment.",
    ),
    click.option("--address", type=AddressType(), help="Where a replica is reached. Default: its endpoints."),
    click.option(
        "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people or for programs."
    ),
)


def _about_an_installation(command: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command()
@_about_an_installation
@click.option(
    "--kueue-namespace",
    metavar="NAMESPACE",
    default="",
    show_default=False,
    help="Where Kueue is. Default: as in the Deployment.",
)
@click.option("--probe", metavar="NAMESPACE", **UNSET, help="Create a job there too, as a dry run.")
def doctor(
    *,
    kubeconfig: Path | None,
    context: str | None,
    policy_namespace: str,
    service: str,
    kueue_namespace: str,
    ca_secret: str,
    address: Address | None,
    probe: str,
    output: str,
) -> NoReturn:
    """Say what is wrong with an installation.

    It looks at versions, clocks, replicas, webhook configurations and their order, certificates, rights, policies and
    Kueue. Nothing is written; with --probe the API server is asked to create a job as a dry run, which stores nothing.
    What you may not read is reported as unknown: a cluster-admin sees all.

    The certificate that is served can be seen where the endpoints can be reached, so mostly not from outside of the
    cluster. There, let kubectl forward a port, and name it with --address.

    The name in brackets is what the runbook explains.

    \b
    Examples:
      mpijob-webhook doctor
      mpijob-webhook doctor --kubeconfig ~/.kube/config --probe team-a
      mpijob-webhook doctor --address 127.0.0.1:8443
      mpijob-webhook doctor -o json

    \b
    Exit code:
      0  no problem; there may be warnings
      1  at least one problem
      2  the cluster cannot be looked at; the message says why
    """
    from webhook.cli.doctor import DoctorReport
    from webhook.installation.doctor import checks
    from webhook.installation.doctor.facts import Facts, Installation
    from webhook.installation.doctor.gather import gather

    site = Installation(namespace=policy_namespace, service=service, kueue_namespace=kueue_namespace)

    async def look(api: "Client") -> tuple[str, Facts]:
        return api.host, await gather(api, site, ca_secret=ca_secret, address=address, probe=probe)

    host, facts = _with_api(kubeconfig, context, look)
    report = DoctorReport(host, policy_namespace, list(checks.run(facts)))
    _show(output, report.as_text(), report.as_json())
    sys.exit(0 if report.good else 1)


@click.group()
def certs() -> None:
    """Look at the certificates of an installation.

    \b
    Examples:
      mpijob-webhook certs status

    \b
    Exit code:
      0  nothing needs doing
      1  something does
      2  the cluster cannot be looked at; the message says why
    """


@certs.command()
@_about_an_installation
def status(
    *,
    kubeconfig: Path | None,
    context: str | None,
    policy_namespace: str,
    service: str,
    ca_secret: str,
    address: Address | None,
    output: str,
) -> NoReturn:
    """Show which certificates are stored, trusted and served, until when, and what needs doing.

    Of Secrets it reads the one with the CA, or the one that is mounted; no private key is shown.

    \b
    Examples:
      mpijob-webhook certs status
      mpijob-webhook certs status --kubeconfig ~/.kube/config --address 127.0.0.1:8443

    \b
    Exit code:
      0  nothing needs doing
      1  something does
      2  the cluster cannot be looked at; the message says why
    """
    from webhook.cli.certs import CertsStatus
    from webhook.installation.doctor.facts import Installation
    from webhook.installation.doctor.gather import look_at_certificates

    site = Installation(namespace=policy_namespace, service=service)

    async def look(api: "Client") -> CertsStatus:
        found = await look_at_certificates(api, site, ca_secret=ca_secret, address=address)
        return CertsStatus.at(api.server_time or datetime.now(UTC), found)

    found = _with_api(kubeconfig, context, look)
    _show(output, found.as_text(), found.as_json())
    sys.exit(1 if found.issues else 0)


def _with_api(kubeconfig: Path | None, context: str | None, look: "Callable[[Client], Awaitable[T]]") -> T:
    """What `look` sees through a client; the command ends where the API server cannot be used."""
    from webhook.client import calls
    from webhook.client.calls import ClusterError

    async def connected() -> T:
        api = await calls.connect(kubeconfig, context=context)
        try:
            return await look(api)
        finally:
            await api.close()

    try:
        return asyncio.run(connected())
    except ClusterError as error:
        fail(error)


def _show(output: str, text: Iterable[str], value: Any) -> None:
    if output == "json":
        click.echo(json.dumps(value, indent=2))
    else:
        for line in text:
            click.echo(line)


PAINT: Final = {Severity.OK: good, Severity.UNKNOWN: faint, Severity.WARNING: caution, Severity.PROBLEM: bad}
WIDTH: Final = max(map(len, Severity))


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """`findings` with the name of their check."""

    host: str
    namespace: str
    findings: Sequence[tuple[str, Diagnosis]]

    @property
    def good(self) -> bool:
        """Whether there is no problem."""
        return not any(finding.severity is Severity.PROBLEM for _, finding in self.findings)

    def as_text(self) -> Iterator[str]:
        """A line for each finding, and one below it for what to do."""
        yield heading(printable(f"mpijob-webhook in namespace {self.namespace} of the cluster at {self.host}"))
        width = max(len(name) for name, _ in self.findings)
        told = ""  # what many unknown things have in common is said once
        for name, finding in self.findings:
            severity = PAINT[finding.severity](f"{finding.severity:<{WIDTH}}")
            id_ = faint(f" [{finding.id}]") if finding.id else ""
            yield f"{severity}  {name:<{width}}  {printable(finding.text)}{id_}"
            if finding.fix and finding.fix != told:
                yield f"{'':{WIDTH + width + 4}}to do: {printable(finding.fix)}"
            told = finding.fix if finding.severity is Severity.UNKNOWN else told
        counts = Counter(finding.severity for _, finding in self.findings)
        words = [_count(counts[each], each) for each in reversed(Severity) if counts[each]]
        yield ", ".join(words)

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "cluster": self.host,
            "namespace": self.namespace,
            "good": self.good,
            "findings": [
                {"check": name, "severity": each.severity.value, "id": each.id, "text": each.text, "fix": each.fix}
                for name, each in self.findings
            ],
        }


def _count(number: int, severity: Severity) -> str:
    plural = "s" if number > 1 and severity in {Severity.PROBLEM, Severity.WARNING} else ""
    return f"{number} {severity}{plural}"
