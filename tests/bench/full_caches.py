"""An API server of ours with 10,000 jobs in 1,000 namespaces, for servers that are measured with their caches full.

It has no quotas: a review of a job that one covers writes a reservation, which `tests.bench.quota_burst` measures.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.body import CREATIONS, JOBS, mutate_body, validate_body
from tests.bench.cluster_objects import PLACES, Size, collections, job
from tests.bench.cluster_size import serving
from webhook.cluster.resource import WatchedPlace
from webhook.server.policy_watch import policies

SIZE: Final = Size(10_000, 1_000)
SMALL: Final = Size.of(10)
ABSENT: Final = ("resourcequotas", "leases")


@contextmanager
def kubeconfig(folder: Path, size: Size | None = None) -> Iterator[Path]:
    """A kubeconfig for that server, or one with so many jobs; it runs until the block ends."""
    size = size or SIZE
    found = {place: listed for place, listed in collections(size).items() if not place[0].endswith(ABSENT)}
    configmaps = policies(PLACES[WatchedPlace.OWN])
    found[configmaps.path, configmaps.label_selector] = 0, lambda _: b""
    with serving(found) as url:
        named = {
            "clusters": {"cluster": {"server": url}},
            "users": {"user": {}},
            "contexts": {"context": {"cluster": "it", "user": "it"}},
        }
        written = {kind: [{"name": "it", **value}] for kind, value in named.items()}
        path = folder / f"{size.jobs}-jobs.kubeconfig"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "it", **written}))
        yield path


def write_bodies(validate: Path, mutate: Path) -> None:
    """Reviews of new jobs in those namespaces, all that they refer to being there."""
    jobs = [job(number, SIZE.namespace(number), queued=False) for number in range(SIZE.jobs, SIZE.jobs + JOBS)]
    created = (validate_body(each, time) for time in range(CREATIONS) for each in jobs)
    validate.write_bytes(b"".join(each + b"\n" for each in created))
    mutate.write_bytes(b"".join(mutate_body(each) + b"\n" for each in jobs))
