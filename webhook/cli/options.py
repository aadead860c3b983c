"""Options, exit codes, value types and output that several commands share."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from webhook import PROGRAM
from webhook.api import duration
from webhook.cli.terminal import fail
from webhook.client.access import Access, Impersonation

if TYPE_CHECKING:
    from webhook.client.calls import Address, Client

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

REFUSED: Final = 1
"""The exit code of a command that worked and reports a problem, such as a rejected job."""


def files_too(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


FILE: Final = click.Path(path_type=Path, dir_okay=False)


def output_option(forms: Sequence[str], help_text: str) -> Callable[[Command], Command]:
    return click.option("-o", "--output", type=click.Choice(forms), default="text", help=help_text)


OUTPUT: Final = output_option(("text", "json"), "The output format: for people or programs.")
POLICY: Final = click.option(
    "--policy",
    type=FILE,
    help="Policies: MPIJobPolicy, or ConfigMaps with it. Default: the built-in policy.",
)
POLICY_NAMESPACE: Final = click.option(
    "--policy-namespace", metavar="NAMESPACE", default=PROGRAM, help="The namespace of policy ConfigMaps."
)
KUEUE_NAMESPACE: Final = click.option(
    "--kueue-namespace", metavar="NAMESPACE", default="kueue-system", help="The namespace of Kueue's configuration."
)
CLUSTER_FILE: Final = click.option(
    "--cluster", type=FILE, help="A file with the objects of the cluster, from `snapshot` or `kubectl get ... -o yaml`."
)
EMPTY: Final[dict[str, Any]] = {"default": "", "show_default": False}
"""Settings of an option with an empty default, which --help does not show."""


def utf8_text(value: str) -> str:
    """The text; BadParameter for an argument whose bytes are not UTF-8."""
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise click.BadParameter("is not text in UTF-8")
    return value


def object_name(value: str) -> str:
    """The name of a namespace or queue, which may be empty; BadParameter for an invalid name or label value."""
    from webhook.api import names

    if value and (problem := names.label_value_problem(value) or names.dns_1123_subdomain_problem(value)):
        raise click.BadParameter(f'"{value[:60]}" {problem}')
    return value


def duration_seconds(value: str) -> int:
    try:
        return duration.parse(value)
    except duration.DurationError as error:
        raise click.BadParameter(f"{value} {error}") from None


def host_and_port(value: str) -> "Address":
    """HOST:PORT as a pair. An IPv6 address is in brackets."""
    host, _, port = value.rpartition(":")
    if not host.strip("[]"):
        raise click.BadParameter(f'"{value}" is not HOST:PORT, such as 127.0.0.1:8443 or [::1]:8443')
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
        raise click.BadParameter(f'"{value}" has no port from 0 to 65535 after its last colon')
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    if ":" in host:
        raise click.BadParameter(f'"{value}" is ambiguous, write an IPv6 address in brackets: [{host}]:{port}')
    return host, int(port)


COMPLETION_SECONDS: Final = 2.0
ADDRESS: Final[dict[str, Any]] = {"type": host_and_port, "metavar": "HOST:PORT"}
DURATION: Final[dict[str, Any]] = {"type": duration_seconds, "metavar": "DURATION"}


def namespace_option(help_text: str, *names: str, **more: Any) -> Callable[[Callable[..., NoReturn]], Any]:
    """The option -n. click reads `-n=team-a` as the namespace `=team-a`, which `object_name` rejects."""
    return click.option("-n", "--namespace", *names, type=object_name, metavar="NAMESPACE", help=help_text, **more)


def about_a_cluster(
    which: str = "The kubeconfig of the cluster. Default: like kubectl.",
) -> Callable[[Callable[..., NoReturn]], Command]:
    """Add kubectl's options for the cluster and the user. They set the argument `access` of the command."""

    def decorate(command: Callable[..., NoReturn]) -> Any:
        @wraps(command)
        def with_access(
            *arguments: Any,
            kubeconfig: Path | None,
            context: str | None,
            as_user: str,
            as_groups: tuple[str, ...],
            as_uid: str,
            **values: Any,
        ) -> NoReturn:
            access = Access(kubeconfig, context, Impersonation(as_user, as_groups, as_uid))
            command(*arguments, access=access, **values)

        return _with(
            with_access,
            click.option("--kubeconfig", type=FILE, help=which),
            click.option("--context", help="The context of the kubeconfig. Default: its current context."),
            click.option("--as", "as_user", metavar="USER", **EMPTY, help="Impersonate this user."),
            click.option(
                "--as-group",
                "as_groups",
                metavar="GROUP",
                multiple=True,
                help="Impersonate this group; repeatable.",
            ),
            click.option("--as-uid", metavar="UID", **EMPTY, help="The uid of the impersonated user."),
        )

    return decorate


def about_an_installation(command: Command) -> Command:
    return _with(
        about_a_cluster()(command),
        click.option("--policy-namespace", metavar="NAMESPACE", default=PROGRAM, help="The namespace of the service."),
        click.option("--service", metavar="NAME", default=PROGRAM, help="The Service of the webhook."),
        click.option(
            "--ca-secret", metavar="NAME", **EMPTY, help="The Secret of its CA. Default: from the Deployment."
        ),
        click.option("--address", **ADDRESS, help="The address of a replica. Default: the endpoints of the Service."),
        OUTPUT,
    )


def _job_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    import asyncio

    from webhook.cli.stored_jobs import JOBS
    from webhook.client import calls, objects

    async def names() -> list[str]:
        async with await calls.connect(Access(ctx.params.get("kubeconfig"), ctx.params.get("context"))) as api:
            path = JOBS % (space or ctx.params.get("namespace") or api.namespace)
            async with asyncio.timeout(COMPLETION_SECONDS):
                return [job["metadata"]["name"] for job in await objects.listed(api, path, metadata_only=True)]

    space, slash, start = incomplete.rpartition("/")
    try:
        return [CompletionItem(space + slash + name) for name in asyncio.run(names()) if name.startswith(start)]
    except (calls.ClusterError, TimeoutError):
        return []


def flags(texts: Mapping[str, str]) -> Callable[[Command], Command]:
    """Add options without a value. `texts` maps the name of each option to its help."""
    return lambda command: _with(
        command, *(click.option(option, is_flag=True, help=text) for option, text in texts.items())
    )


def given(options: Iterable[str], values: dict[str, Any]) -> frozenset[str]:
    """The flags among `options` that the user set. All flags are removed from `values`."""
    return frozenset(option for option in options if values.pop(option.removeprefix("--").replace("-", "_")))


def about_jobs(command: Command) -> Command:
    return _with(
        command,
        click.argument("job", required=False, metavar="[[NAMESPACE/]NAME]", shell_complete=_job_names),
        about_a_cluster(),
        namespace_option("The namespace of the job. Default: the namespace of the kubeconfig's context."),
        POLICY_NAMESPACE,
        OUTPUT,
    )


def read_jobs(
    access: Access, job: str | None, namespace: str | None, read: "Callable[[Client, str, str], Awaitable[T]]"
) -> T:
    """The result of `read` for a client, a namespace and the name of a job. The name is empty if `job` is None."""
    space, _, name = (job or "").rpartition("/")
    if space and namespace and space != namespace:
        fail(f"{job} is not in namespace {namespace}: name one of the two")
    return with_api(access, lambda api: read(api, space or namespace or api.namespace, name))


def about_new_policies(command: Command) -> Command:
    return _with(
        about_a_cluster("The kubeconfig of the cluster. Default without --cluster: like kubectl.")(command),
        click.option("--policy", "files", multiple=True, metavar="FILE", help="Policies to apply; may be repeated."),
        click.option("--without", multiple=True, metavar="NAME", help="A policy to delete; may be repeated."),
        CLUSTER_FILE,
        POLICY_NAMESPACE,
    )


def _with(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def with_api(access: Access, call: "Callable[[Client], Awaitable[T]]") -> T:
    """The result of `call` with a client. The command ends if the API server cannot be used."""
    import asyncio

    from webhook.client import calls

    async def connected() -> T:
        async with await calls.connect(access) as api:
            return await call(api)

    try:
        return asyncio.run(connected())
    except calls.ClusterError as error:
        fail(error)


def show(output: str, text: Iterable[str], value: Any) -> None:
    if output == "json":
        click.echo(json.dumps(value, indent=2))
    else:
        for line in text:
            click.echo(line)
