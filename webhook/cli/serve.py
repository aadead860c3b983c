"""The command `serve`."""

import gc
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from webhook.cli.options import ADDRESS, DURATION, FILE, KUEUE_NAMESPACE, POLICY, POLICY_NAMESPACE, flags, given
from webhook.kit import optional_parts

if TYPE_CHECKING:
    from webhook.client.calls import Address

LEVELS: Final = ("debug", "info", "warning", "error")
SECONDS: Final = click.FloatRange(min=0)
COUNT: Final = click.IntRange(min=1)


@click.command()
@click.option(
    "--kubeconfig", type=FILE, help="The kubeconfig. Default: the pod's ServiceAccount; with --register like kubectl."
)
@click.option("--listen", **ADDRESS, help="The address for reviews. Default: 0.0.0.0:8443.")
@click.option("--ops-listen", **ADDRESS, help="The address for health and metrics, plain HTTP. Default: 0.0.0.0:8081.")
@POLICY
@POLICY_NAMESPACE
@KUEUE_NAMESPACE
@click.option(
    "--register", is_flag=True, help="For development: register this process with the API server until it ends."
)
@click.option("--tls-cert", type=FILE, help="Certificate chain (PEM). Default: a new certificate for this process.")
@click.option("--tls-key", type=FILE, help="The private key (PEM) of --tls-cert.")
@click.option("--tls-ca", type=FILE, help="The CA (PEM) that must have issued the certificate, if the file exists.")
@click.option("--ca-secret", metavar="NAME", default="", help="Use a CA in this Secret of --policy-namespace.")
@click.option("--service", metavar="NAME", default="", help="The Service that the API server calls.")
@click.option(
    "--ca-lifetime", **DURATION, default="365d", help="Lifetime of the CA; its successor signs after 2/3 of it."
)
@click.option("--leaf-lifetime", **DURATION, default="14d", help="Lifetime of a certificate that the CA signs.")
@click.option("--ca-grace", **DURATION, default="2m", help="Time from publishing a new CA to its first use.")
@click.option("--ca-file", type=FILE, help="The file to write the CA (PEM) of this process's certificate to.")
@click.option("--client-ca", type=FILE, help="Reviews need a client certificate of this CA (PEM).")
@click.option(
    "--client-name",
    "client_names",
    metavar="NAME",
    multiple=True,
    help="Common name or DNS name that a client certificate of --client-ca must have; repeatable.",
)
@click.option(
    "--drain-seconds", metavar="SECONDS", type=SECONDS, default=5.0, help="How long to keep serving after SIGTERM."
)
@click.option(
    "--max-in-flight",
    metavar="COUNT",
    type=COUNT,
    default=512,
    help="Reviews that may wait for the cluster at the same time; more are answered with 503.",
)
@click.option("--timeout", metavar="SECONDS", type=SECONDS, default=10.0, help="The time limit for a review.")
@click.option(
    "--ssh-keys-ready",
    metavar="COUNT",
    type=click.IntRange(min=0),
    default=128,
    help="Spare RSA key pairs for new jobs. With 0, each pair is generated on request.",
)
@click.option(
    "--ssh-keys-rate",
    metavar="PER_SECOND",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    help="Maximum number of spare key pairs generated per second. A pair takes half a second of a processor.",
)
@click.option(
    "--remove-keys", is_flag=True, help="Delete a job's SSH keys when it has ended; needs permission to delete Secrets."
)
@flags(optional_parts.options())
@click.option("--log-level", type=click.Choice(LEVELS), default="info", help="Logs are JSON lines on standard error.")
def serve(
    *, listen: "Address | None", ops_listen: "Address | None", register: bool, timeout: float, **settings: Any
) -> NoReturn:
    """Run the webhook until SIGTERM or Ctrl-C.

    The webhook answers POST /mutate-mpijob, /mutate-ssh-secret, /validate-mpijob, /validate-policy, /validate-trainer,
    and with --conversion /convert, over TLS at --listen. It answers GET /healthz, /readyz, /metrics and /metrics/jobs
    over plain HTTP at --ops-listen.

    --register is for a cluster on this machine: the process listens on free ports of 127.0.0.1, creates a CA, and
    installs the two webhook configurations. They are removed when the process ends.

    \b
    Examples:
      mpijob-webhook serve --tls-cert tls.crt --tls-key tls.key --policy policy.yaml
      mpijob-webhook serve --ca-secret mpijob-webhook-ca --service mpijob-webhook
      mpijob-webhook serve --register --kubeconfig ~/.kube/config
      mpijob-webhook serve --listen 127.0.0.1:8443 --ops-listen 127.0.0.1:8081 --ca-file ca.pem

    \b
    Exit code:
      0    stopped by a signal, after every request was answered
      2    could not start; the message says why
      130  stopped at once by a second signal (143 if it was SIGTERM)
    """
    # The search for garbage in imported modules takes a tenth of the time of the start. `run` enables the collector.
    gc.disable()
    from webhook.server.process import ServeSettings, run

    host = "127.0.0.1" if register else "0.0.0.0"  # noqa: S104 - in a pod every address is the pod's own
    sys.exit(
        run(
            ServeSettings(
                listen=listen or (host, 0 if register else 8443),
                ops_listen=ops_listen or (host, 0 if register else 8081),
                register=register,
                timeout_seconds=timeout,
                options=given(optional_parts.options(), settings),
                **settings,
            )
        )
    )
