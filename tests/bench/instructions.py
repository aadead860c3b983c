"""Instructions that a review costs, by stage, rule and injection: `make instructions`.

They are the same on a busy machine, so a change of a percent shows. The reviews are those of `make bench`. Each rule
and injection is charged with what it is the first to ask for.
"""
# ruff: noqa: T201 - a command prints

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from tests.bench import body, instruction_counter
from tests.bench.instruction_counter import Count, NoCounterError
from tests.bench.machine import this_machine
from tests.bench.report import markdown, text
from webhook.admission import left_alone, pipelines, required, too_large
from webhook.api import document, mpijob, review
from webhook.cluster.view import NothingKnown
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder
from webhook.policy.in_force import Policy

Stages = Callable[[bytes, Policy], Iterator[str]]
"""Does a review, and says after each stage what it was."""

ROUNDS: Final = 5
WHOLE: Final = "whole review"
_TODAY: Final = date(2026, 1, 1)


def validating(data: bytes, policy: Policy) -> Iterator[str]:
    """As `pipelines.validate` does it, of a job that is created."""
    request = review.decode(data)
    yield "decode the review"
    job = mpijob.decode(request.object)
    mpijob.apply_operator_defaults(job)
    yield "decode the job"
    ctx = _context(request, policy)
    left_alone.reason_to_check_nothing(request, job, None, policy, ctx.view)
    too_large.findings(job, ctx, policy)
    yield "size"
    for rule, settings, _ in policy.rules:
        for _ in rule.check(job, settings, ctx):
            pass
        yield f"rule {rule.id}"
    list(required.missing(policy, ctx))
    yield "required injections"
    decision = pipelines.Decision(name=job.metadata.name)
    review.encode(decision.response(request.uid))
    yield "an empty reply"


def mutating(data: bytes, policy: Policy) -> Iterator[str]:
    """As `pipelines.mutate` does it, of a job that is created."""
    request = review.decode(data)
    yield "decode the review"
    job, written = document.decode(request.object)
    yield "decode the job and the document"
    ctx = _context(request, policy)
    left_alone.reason_to_inject_nothing(request, job, None, policy, ctx.view)
    too_large.findings(job, ctx, policy)
    yield "size"
    builder = PatchBuilder(written)
    decision = pipelines.Decision(name=job.metadata.name, injection_warnings=policy.document.injection_warnings)
    for injection, settings in policy.injections:
        builder.author = injection.id
        if notes := list(injection.inject(job, settings, ctx, builder)):
            decision.told[injection.id] = notes
        yield f"injection {injection.id}"
    decision.news = list(dict.fromkeys(builder.authors))
    decision.patch, decision.authors, decision.document = builder.operations, builder.authors, builder.document
    review.encode(decision.response(request.uid))
    yield "reply"


def _context(request: review.AdmissionRequest, policy: Policy) -> Context:
    return Context(namespace=request.namespace, document=request.object, view=NothingKnown(), admitted=policy.admitted)


def _whole_validating(data: bytes, policy: Policy) -> Iterator[str]:
    request = review.decode(data)
    decision = pipelines.validate(request, policy=policy, view=NothingKnown(), today=_TODAY)
    review.encode(decision.response(request.uid))
    yield WHOLE


def _whole_mutating(data: bytes, policy: Policy) -> Iterator[str]:
    request = review.decode(data)
    decision = pipelines.mutate(request, policy=policy, view=NothingKnown())
    review.encode(decision.response(request.uid))
    yield WHOLE


HOOKS: Final[Mapping[str, tuple[Callable[[int], bytes], Sequence[Stages]]]] = {
    "validate": (body.validate_bodies, (_whole_validating, validating)),
    "mutate": (body.mutate_bodies, (_whole_mutating, mutating)),
}


def measured(stages: Stages, reviews: Sequence[bytes], policy: Policy, count: Count) -> dict[str, int]:
    """Instructions of each stage for one review, on average: the fewest of several rounds, since the first fill caches
    and a collection of garbage falls into one stage or another."""
    least: dict[str, int] = {}
    between = min(_between(count) for _ in range(100))
    for _ in range(ROUNDS):
        spent: Counter[str] = Counter()
        for data in reviews:
            before = count()
            for stage in stages(data, policy):
                spent[stage] += count() - before - between
                before = count()
        least = {stage: min(amount, least.get(stage, amount)) for stage, amount in spent.items()}
    return {stage: amount // len(reviews) for stage, amount in least.items()}


def _between(count: Count) -> int:
    """What counting itself costs."""
    before = count()
    return count() - before


def figures(count: Count) -> dict[str, dict[str, int]]:
    """Instructions by stage for both hooks, with the built-in policy, where nothing of the cluster is known."""
    policy = pipelines.load_policy(None)
    found: dict[str, dict[str, int]] = {}
    for hook, (bodies, ways) in HOOKS.items():
        reviews = bodies(body.JOBS).splitlines()
        found[hook] = {}
        for stages in ways:
            found[hook] |= measured(stages, reviews, policy, count)
    return found


def table(hook: str, found: Mapping[str, int]) -> list[tuple[str, ...]]:
    """The headings and a line for each stage, in thousands."""
    return [(hook, "thousands"), *((stage, f"{amount / 1000:,.1f}") for stage, amount in found.items())]


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 1 where nothing can be counted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the numbers to a file in JSON too")
    chosen = parser.parse_args(arguments)
    try:
        count = instruction_counter.counter()
    except NoCounterError as error:
        print(f"Instructions cannot be counted on this machine: {error}.", file=sys.stderr)
        return 1
    found = figures(count)
    machine = this_machine()
    print(f"{machine.summary}: thousands of instructions for one review\n")
    for hook, amounts in found.items():
        print((markdown if chosen.markdown else text)(table(hook, amounts), left=1), end="\n\n")
    if chosen.output is not None:
        written = {"machine": machine.summary, "instructions": found}
        chosen.output.write_bytes(msgspec.json.format(msgspec.json.encode(written)) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
