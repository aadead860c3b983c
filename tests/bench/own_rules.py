"""What own rules add to a review: `python -m tests.bench.own_rules`, with 20 of them and without, in turns.

One client sends a job of 8 kB after the other over a connection that stays open, to the service in this process.
"""

import json
import time
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.support import jobs
from tests.support.live_service import live
from tests.support.own_rules import document, rule

RULES: Final = 20
REVIEWS: Final = 2_000
EACH: Final = 50
"""Reviews before the other service's turn."""
WORKER: Final = "object.spec.mpiReplicaSpecs.Worker"
EXPRESSIONS: Final = (
    "object.spec.slotsPerWorker <= {n} + 8",
    f"{WORKER}.template.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && {{n}} >= 0)",
    f"{WORKER}.template.spec.containers.all(c, c.image.startsWith('registry.example.com/') || {{n}} < 0)",
    "object.metadata.?labels[?'team'].orValue('a') != 'x{n}'",
    f"quantity({WORKER}.template.spec.containers[0].resources.limits.memory).isLessThan(quantity('1{{n}}00Gi'))",
    "job.totalGpus <= job.workers * 8 + {n}",
    f"{WORKER}.template.spec.containers[0].env.all(e, !e.name.startsWith('FORBIDDEN_{{n}}'))",
)


def body() -> bytes:
    """A job of about 8 kB with 60 environment variables."""
    env = [{"name": f"VARIABLE_{number}", "value": "x" * 60} for number in range(60)]
    changes: dict[str, Any] = {"Worker.template.spec.containers.0.env": env, "metadata.labels": {"team": "a"}}
    return jobs.body(jobs.changed(changes))


def main() -> None:
    """Measure, and print a line for each."""
    rules = [
        rule(EXPRESSIONS[number % len(EXPRESSIONS)].format(n=number), id=f"rule-{number}") for number in range(RULES)
    ]
    seconds: dict[str, list[float]] = {"without own rules": [], f"with {RULES}": []}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(document(*rules))
        with live() as without, live(policy=path) as with_rules:
            data, services = body(), dict(zip(seconds, (without, with_rules), strict=True))
            connections = {name: service.connect() for name, service in services.items()}
            for turn in range(REVIEWS // EACH + 1):
                for name, connection in connections.items():
                    for _ in range(EACH):
                        began = time.perf_counter()
                        answer = connection.post("/validate-mpijob?timeout=10s", data).answer
                        took = time.perf_counter() - began
                        assert answer["allowed"], json.dumps(answer)
                        assert "rule-faults" not in answer.get("auditAnnotations", {})
                        if turn:
                            seconds[name].append(took)
            for connection in connections.values():
                connection.close()
    for name, found in seconds.items():
        p99 = quantiles(found, n=100)[-1]
        print(f"{name}: p50 {1000 * median(found):.2f} ms, p99 {1000 * p99:.2f} ms")  # noqa: T201 - what it is for


if __name__ == "__main__":
    main()
