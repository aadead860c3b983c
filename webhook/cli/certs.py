"""The commands `certs ...`."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

import click

from webhook.cli.options import about_an_installation, show, with_api
from webhook.client.access import Access

if TYPE_CHECKING:
    from webhook.cli.certs_status import CertsStatus
    from webhook.client.calls import Address, Client


@click.group()
def certs() -> None:
    """Inspect the certificates of an installation.

    \b
    Examples:
      mpijob-webhook certs status

    \b
    Exit code:
      0  nothing needs to be done
      1  something needs to be done
      2  the cluster cannot be read; the message says why
    """


@certs.command()
@about_an_installation
def status(
    *,
    access: Access,
    policy_namespace: str,
    service: str,
    ca_secret: str,
    address: "Address | None",
    output: str,
) -> NoReturn:
    """Show the stored, trusted and served certificates.

    The report lists when each certificate expires, and the problems with their fixes. The only Secret that the command
    reads is the Secret with the CA, or the mounted Secret. The command shows no private key.

    \b
    Examples:
      mpijob-webhook certs status
      mpijob-webhook certs status --kubeconfig ~/.kube/config --address 127.0.0.1:8443

    \b
    Exit code:
      0  nothing needs to be done
      1  something needs to be done
      2  the cluster cannot be read; the message says why
    """
    from webhook.cli.certs_status import CertsStatus
    from webhook.installation.doctor.facts import Location
    from webhook.installation.doctor.gather import read_certificates

    location = Location(namespace=policy_namespace, service=service)

    async def read_status(api: "Client") -> "CertsStatus":
        certificates = await read_certificates(api, location, ca_secret=ca_secret, address=address)
        return CertsStatus.at(api.server_time or datetime.now(UTC), certificates)

    report = with_api(access, read_status)
    show(output, report.as_text(), report.as_json())
    sys.exit(1 if report.issues else 0)
