"""What `init` asks on a terminal."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from webhook.cli import first_job
from webhook.cli.first_job import FRAMEWORKS, Wishes
from webhook.cli.options import NameType

if TYPE_CHECKING:
    from webhook.cli.job_verdict import Verdict


def ask(
    given: Mapping[str, Any], program: Sequence[str], wish: Callable[..., Wishes], judge: "Callable[[Wishes], Verdict]"
) -> Wishes:
    """Ask until there is a job that would be admitted, or nobody wants to change it any more.

    What an option has `given` is not asked; answers of before are proposed the next time.
    """
    answers = dict(given)
    while True:
        answers, program = _round(given, answers, program)
        wishes = wish(answers, program)
        verdict = judge(wishes)
        if verdict.allowed:
            return wishes
        for line in verdict.in_short():
            click.echo(line, err=True)
        if not click.confirm("Change your answers?", default=True, err=True):
            return wishes


def _round(
    given: Mapping[str, Any], before: Mapping[str, Any], program: Sequence[str]
) -> tuple[dict[str, Any], Sequence[str]]:
    answers = dict(before)

    def question(key: str, text: str, default: Any, kind: Any = str) -> Any:
        if given[key] is None:
            proposed = before[key] if before[key] is not None else default
            answers[key] = click.prompt(text, default=proposed, type=kind, err=True)
        return answers[key]

    name = question("framework", "Framework", "pytorch", click.Choice(list(FRAMEWORKS)))
    framework = FRAMEWORKS[name]
    if before["framework"] not in {None, name}:  # what was right for another one
        answers |= {key: given[key] for key in ("image", "name", "gpus")}
        before, program = answers, ()
    question("name", "Name of the job", first_job.default_name(name))
    question("namespace", "Namespace (empty for that of your context)", "", NameType())
    question("workers", "Workers", first_job.WORKERS, click.IntRange(min=1))
    gpus = question("gpus", "GPUs of each worker", framework.gpus, click.IntRange(min=0))
    question("image", f"Image, with {framework.needs}", framework.image or None)
    program = shlex.split(
        click.prompt("Program that each rank runs", default=shlex.join(program or framework.program), err=True)
    )
    if gpus and given["rdma"] is None:
        answers["rdma"] = click.confirm("RDMA between the workers?", default=bool(before["rdma"]), err=True)
    question("queue", "Queue of Kueue (empty for none)", "", NameType())
    return answers, program
