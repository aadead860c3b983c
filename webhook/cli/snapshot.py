"""The command `snapshot`."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from webhook import PROGRAM
from webhook.cli import options
from webhook.cli.terminal import caution, fail, faint, printable
from webhook.client.access import Access

if TYPE_CHECKING:
    from webhook.client.reading import Reading

HEADING: Final = f"""\
# The objects of a cluster that rules read, for `{PROGRAM} check --cluster` and `{PROGRAM} policy ... --cluster`.
# The first object lists the kinds that were read completely. If an object of such a kind is not in this file, it does
# not exist. Jobs are complete, with their environment: show this file only to people who may see them.
"""


@click.command()
@options.about_a_cluster()
@options.namespace_option("Read only this namespace; repeatable. Default: all namespaces.", "namespaces", multiple=True)
@options.POLICY_NAMESPACE
@options.KUEUE_NAMESPACE
@click.option("-o", "--output", type=options.FILE, help="The file to write. Default: standard output.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def snapshot(
    *, access: Access, namespaces: tuple[str, ...], output: Path | None, force: bool, **where: Any
) -> NoReturn:
    """Write the objects of a cluster to a file.

    Other commands read the file with --cluster. The file has complete jobs and policies. Other objects, such as quotas
    and nodes, have only the fields that rules read. No Secret is read, and no ConfigMap except policies and Kueue's
    configuration. Only the owner can read the file, because environments of jobs may have secrets.

    With --namespace only the named namespaces are read. Objects of other namespaces, and objects that you may not read,
    are unknown. Rules that need an unknown object do not reject a job.

    \b
    Examples:
      mpijob-webhook snapshot -o cluster.yaml
      mpijob-webhook snapshot -n team-a -n team-b --context prod -o teams.yaml
      mpijob-webhook check job.yaml --cluster cluster.yaml

    \b
    Exit code:
      0  the file was written; kinds that the cluster does not have are not an error
      1  the file was written, and some objects could not be read
      2  the file was not written; the message says why
    """
    from webhook.cli import world_sources

    if output is not None and output.exists() and not force:
        fail(f"{output} exists already, --force replaces it")

    def tell(line: str) -> None:
        click.echo(faint(printable(line)), err=True)

    reading = options.with_api(access, lambda api: world_sources.take(api, namespaces=namespaces, tell=tell, **where))
    if output is None:
        for piece in text(reading):
            click.echo(piece, nl=False)
    else:
        try:
            _write(output, text(reading))
        except OSError as error:
            fail(f"cannot write {output}: {error.strerror}")
    for problem in reading.problems:
        click.echo(f"{caution('warning')}: {printable(problem)}", err=True)
    sys.exit(options.REFUSED if reading.problems else 0)


def text(reading: "Reading") -> Iterator[str]:
    from webhook.api import yaml

    yield HEADING
    yield from map(yaml.dump_document, reading.documents())


def _write(path: Path, pieces: Iterable[str]) -> None:
    """Write the file atomically. NamedTemporaryFile has mode 0600, so only the owner can read the file."""
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            file.writelines(pieces)
            file.flush()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
