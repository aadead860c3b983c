"""The command `doctor`."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from webhook import PROGRAM
from webhook.cli.options import EMPTY, about_an_installation, show, with_api
from webhook.cli.terminal import bad, caution, faint, good, heading, printable
from webhook.client.access import Access
from webhook.installation.doctor.diagnosis import Diagnosis, Severity

if TYPE_CHECKING:
    from webhook.client.calls import Address, Client
    from webhook.installation.doctor.facts import Facts


@click.command()
@about_an_installation
@click.option(
    "--kueue-namespace",
    metavar="NAMESPACE",
    **EMPTY,
    help="The namespace of Kueue. Default: from the Deployment.",
)
@click.option("--probe", metavar="NAMESPACE", **EMPTY, help="Also create a job in this namespace, as a dry run.")
def doctor(
    *,
    access: Access,
    policy_namespace: str,
    service: str,
    kueue_namespace: str,
    ca_secret: str,
    address: "Address | None",
    probe: str,
    output: str,
) -> NoReturn:
    """Report problems of an installation.

    The command checks versions, replicas, webhook configurations and their order, certificates, rights,
    policies and Kueue. It changes no object. Objects that you may not read are reported as unknown. A cluster-admin can
    read all objects.

    Replicas can usually not be reached from outside of the cluster. To check the served certificate, forward a port
    with kubectl, and name the port with --address.

    Each problem ends with a name in brackets, which the runbook explains.

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
      2  the cluster cannot be read; the message says why
    """
    from webhook.installation.doctor import checks
    from webhook.installation.doctor.facts import Location
    from webhook.installation.doctor.gather import gather

    location = Location(namespace=policy_namespace, service=service, kueue_namespace=kueue_namespace)

    async def gathered(api: "Client") -> "tuple[str, Facts]":
        return api.host, await gather(api, location, ca_secret=ca_secret, address=address, probe=probe)

    host, facts = with_api(access, gathered)
    report = DoctorReport(host, policy_namespace, list(checks.run(facts)))
    show(output, report.as_text(), report.as_json())
    sys.exit(0 if report.good else 1)


PAINT: Final = {Severity.OK: good, Severity.UNKNOWN: faint, Severity.WARNING: caution, Severity.PROBLEM: bad}
WIDTH: Final = max(map(len, Severity))


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The diagnoses of an installation."""

    host: str
    namespace: str
    diagnoses: Sequence[tuple[str, Diagnosis]]
    """(name of the check, diagnosis)."""

    @property
    def good(self) -> bool:
        return not any(diagnosis.severity is Severity.PROBLEM for _, diagnosis in self.diagnoses)

    def as_text(self) -> Iterator[str]:
        yield heading(printable(f"{PROGRAM} in namespace {self.namespace} of the cluster at {self.host}"))
        width = max(len(name) for name, _ in self.diagnoses)
        last_fix = ""  # consecutive unknown diagnoses often have the same fix
        for name, diagnosis in self.diagnoses:
            severity = PAINT[diagnosis.severity](f"{diagnosis.severity:<{WIDTH}}")
            id_ = faint(f" [{diagnosis.id}]") if diagnosis.id else ""
            yield f"{severity}  {name:<{width}}  {printable(diagnosis.text)}{id_}"
            if diagnosis.fix and diagnosis.fix != last_fix:
                yield f"{'':{WIDTH + width + 4}}to do: {printable(diagnosis.fix)}"
            last_fix = diagnosis.fix if diagnosis.severity is Severity.UNKNOWN else last_fix
        counts = Counter(diagnosis.severity for _, diagnosis in self.diagnoses)
        yield ", ".join(_count(counts[severity], severity) for severity in reversed(Severity) if counts[severity])

    def as_json(self) -> dict[str, Any]:
        return {
            "cluster": self.host,
            "namespace": self.namespace,
            "good": self.good,
            "findings": [
                {
                    "check": name,
                    "severity": diagnosis.severity.value,
                    "id": diagnosis.id,
                    "text": diagnosis.text,
                    "fix": diagnosis.fix,
                }
                for name, diagnosis in self.diagnoses
            ],
        }


def _count(number: int, severity: Severity) -> str:
    plural = "s" if number > 1 and severity in {Severity.PROBLEM, Severity.WARNING} else ""
    return f"{number} {severity}{plural}"
