"""What a review costs by the size of the job, by the number of rules that are on, and by the size of the cluster.

Processor time in this process, from the bytes of the review to those of the reply, in the best of some rounds: other
programs change it little. That of clusters is measured by `tests.bench.cluster_size`.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from typing import Any, Final

from tests.bench import body, cluster_size
from tests.bench.cluster_objects import Size
from tests.bench.section import Section, Table
from tests.controlplane.progress import Progress
from webhook import rules
from webhook.admission import pipelines
from webhook.admission.decision import Decision
from webhook.api import review
from webhook.cluster.view import NothingKnown
from webhook.policy.in_force import Policy

CONTAINERS: Final = (1, 2, 5, 10, 20, 50)
JOBS: Final = 50
ROUNDS: Final = 7
TODAY: Final = date(2026, 3, 2)

Hook = Callable[..., Decision]
VALIDATE: Final[Hook] = partial(pipelines.validate, today=TODAY)


def with_containers(number: int, count: int) -> dict[str, Any]:
    """A job with so many containers in each worker; those after the first are sidecars without GPUs."""
    job = body.user_job(number)
    spec = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    del spec["initContainers"]  # `job-size` counts them too
    spec["containers"] += [
        {
            "name": f"sidecar-{index}",
            "image": f"registry.example.com/tools/exporter:1.{index}",
            "command": ["exporter", "--port", str(9100 + index)],
            "env": [{"name": "TEAM", "value": f"team-{number:03}"}],
            "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/exporter", "readOnly": True}],
        }
        for index in range(1, count)
    ]
    return job


def with_rules(count: int) -> Policy:
    """The built-in policy with the first rules alone, in the order of their names."""
    off = {rule_id: {"action": "off"} for rule_id in [*rules.REGISTRY][count:]}
    document = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy", "rules": off}
    return pipelines.load_policy(json.dumps(document))


def cost(bodies: Sequence[bytes], policy: Policy, hook: Hook, rounds: int) -> float:
    """Microseconds of processor time for each review."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        for data in bodies:
            request = review.decode(data)
            decision = hook(request, policy=policy, view=NothingKnown())
            review.encode(decision.response(request.uid))
        best = min(best, time.process_time() - began)
    return best / len(bodies) * 1e6


def by_containers(rounds: int) -> Iterator[tuple[str, ...]]:
    """The headings and a line for each number of containers of a worker."""
    yield "containers of a worker", "kB of the review", "validate µs", "mutate µs"
    policy = pipelines.load_policy(None)
    for count in CONTAINERS:
        jobs = [with_containers(number, count) for number in range(JOBS)]
        validating = [body.validate_body(job) for job in jobs]
        mutating = [body.mutate_body(job) for job in jobs]
        size = sum(map(len, validating)) / JOBS / 1000
        costs = cost(validating, policy, VALIDATE, rounds), cost(mutating, policy, pipelines.mutate, rounds)
        yield str(count), f"{size:.0f}", *(f"{each:,.0f}" for each in costs)


def by_rules(rounds: int) -> Iterator[tuple[str, ...]]:
    """The headings and a line for each number of rules."""
    yield "rules on", "validate µs"
    bodies = [body.validate_body(body.user_job(number)) for number in range(JOBS)]
    every = len(rules.REGISTRY)
    for count in sorted({1, every // 4, every // 2, every * 3 // 4, every}):
        yield str(count), f"{cost(bodies, with_rules(count), VALIDATE, rounds):,.0f}"


def measure(arguments: argparse.Namespace, progress: Progress) -> Section:
    """All three curves."""
    progress.say("What a review costs by containers and by rules: half a minute.")
    tables = [Table(lines=[*by_containers(arguments.rounds)]), Table(lines=[*by_rules(arguments.rounds)])]
    sizes = [Size.of(jobs) for jobs in arguments.sizes]
    results = []
    for size in [*sizes, Size(max(arguments.sizes), 1)] if sizes else []:
        progress.say(f"Filling the caches of a process with {size.jobs:,} jobs in {size.namespaces:,} namespaces.")
        results.append((size, cluster_size.run(size)))
    tables.append(Table(lines=cluster_size.table(results), left=0))
    wrong = any(found.wrong for _, found in results)
    problems = ["Some objects could not be read, or jobs were judged wrongly."] if wrong else []
    return Section(tables=tables, samples=results, problems=problems, failed=wrong)
