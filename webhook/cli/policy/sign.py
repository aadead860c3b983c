"""The commands `policy sign` and `policy verify`: policies that the service takes from nobody else."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from webhook.cli.options import FILE, OUTPUT, show
from webhook.cli.terminal import fail


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--key", type=FILE, required=True, help="The private key (PEM, Ed25519).")
@click.option(
    "--serial",
    type=click.IntRange(min=1, max=10**15 - 1),
    metavar="NUMBER",
    help="Has to be higher than that of the policy in force. Default: the seconds since 1970.",
)
def sign(files: tuple[str, ...], key: Path, serial: int | None) -> NoReturn:
    """Sign the policies in ConfigMaps, for `serve --policy-key`.

    It prints the ConfigMaps with the signature in an annotation, for `kubectl apply -f -`. What is signed is the name
    of the ConfigMap, a serial number and the text under policy.yaml: whoever changes one of them has to sign again. An
    older version that is put back is refused by its serial; to go back, sign the old text anew.

    \b
    Examples:
      openssl genpkey -algorithm ed25519 -out policy.key
      openssl pkey -in policy.key -pubout -out policy.pub
      mpijob-webhook policy sign base.yaml --key policy.key | kubectl apply -f -

    \b
    Exit code:
      0  signed
      2  unusable input: a file, a policy in it or the key
    """
    from webhook.cli.policy import signing
    from webhook.installation.policy_keys import KeyFileError

    try:
        for text in signing.signed(files, key, serial or int(time.time())):
            click.echo(text, nl=False)
    except (KeyFileError, signing.NotSignable) as error:
        fail(*str(error).splitlines())
    sys.exit(0)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--key", "keys", type=FILE, required=True, multiple=True, help="A public key (PEM); repeatable.")
@OUTPUT
def verify(files: tuple[str, ...], keys: tuple[Path, ...], output: str) -> NoReturn:
    """Say whether the policies in ConfigMaps are signed.

    With what a cluster has it is what its service says, but for an older version that was put back: that only the
    service knows.

    \b
    Examples:
      mpijob-webhook policy verify signed.yaml --key policy.pub
      kubectl get configmaps -n mpijob-webhook -o yaml | mpijob-webhook policy verify - --key policy.pub

    \b
    Exit code:
      0  every policy is signed by one of the keys
      1  at least one is not
      2  unusable input: a file, a policy in it or a key
    """
    from webhook.cli.policy import signing
    from webhook.installation.policy_keys import KeyFileError

    try:
        found = signing.verified(files, keys)
    except (KeyFileError, signing.NotSignable) as error:
        fail(*str(error).splitlines())
    show(output, (each.as_text() for each in found), [each.as_json() for each in found])
    sys.exit(0 if all(each.good for each in found) else 1)
