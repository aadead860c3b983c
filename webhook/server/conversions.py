"""Reviews of the CRD's conversion webhook: jobs in the version that somebody asks for."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple

import msgspec

from webhook.admission import too_large
from webhook.admission.pipelines import DeadlineExceeded
from webhook.api import conversion_review, mpijob
from webhook.api.review import ReviewError
from webhook.converters import both_ways
from webhook.converters.report import ConversionError
from webhook.server.log import MAX_LOGGED
from webhook.server.requests import Reply, Request
from webhook.server.telemetry import Telemetry

KNOWN: Final = (mpijob.API_VERSION, *mpijob.OLDER_VERSIONS)
# Bytes of an object. The largest that is converted takes some 200 ms, and others must not wait for that.
MOST_AT_ONCE: Final = 256 * 1024
_ASIDE: Final = ThreadPoolExecutor(1, thread_name_prefix="conversions")


class _New(NamedTuple):
    """What an object has become."""

    written: msgspec.Raw
    outcome: str


class _NoJob(NamedTuple):
    """An object that cannot be converted."""

    namespace: str
    name: str
    why: str


async def converted(request: Request, telemetry: Telemetry) -> Reply:
    """The reply to a ConversionReview. What cannot be converted is no fault of ours: the reply says why.

    Others have their turn between two objects, and while a large one is converted: one of these at a time, in a thread
    of its own. ReviewError for what is no such review, and DeadlineExceeded.
    """
    asked = conversion_review.decode(request.body)
    version = asked.desired if asked.desired in KNOWN else "unknown"
    found: list[msgspec.Raw] = []
    outcomes: Counter[str] = Counter()
    for written in asked.objects:
        if found:
            await asyncio.sleep(0)
        work = partial(_converted, written, asked.desired, request.deadline)
        new = await asyncio.get_running_loop().run_in_executor(_ASIDE, work) if len(written) > MOST_AT_ONCE else work()
        if isinstance(new, _NoJob):
            telemetry.converted(version, {"refused": 1}, monotonic() - request.started)
            telemetry.log.info("conversion refused", version=version, namespace=new.namespace, name=new.name)
            message = f"MPIJob {new.namespace}/{new.name}: {new.why}"
            return Reply(conversion_review.encode_failure(asked.uid, message))
        outcomes[new.outcome] += 1
        found.append(new.written)
    telemetry.converted(version, outcomes, monotonic() - request.started)
    return Reply(conversion_review.encode(asked.uid, found))


def _converted(written: msgspec.Raw, version: str, deadline: float) -> _New | _NoJob:
    """One object. Decoded it takes many times as much, so nothing of that is left when others have their turn."""
    if monotonic() > deadline:
        raise DeadlineExceeded("conversion")
    fault = next((finding.violation.message for finding in too_large.unread(written)), "")
    document = conversion_review.opened(written) if fault else conversion_review.document(written)
    try:
        new = both_ways.convert(document, version, too_large=fault)
    except RecursionError:
        raise ReviewError("an object is nested too deep") from None
    except ConversionError as error:
        return _NoJob(*_place(document), str(error))
    outcome = "stand-in" if new.get("spec") == both_ways.NO_JOB else "converted"
    return _New(conversion_review.raw(new), outcome)


def _place(document: dict[str, Any]) -> tuple[str, str]:
    """Namespace and name, as far as they can be read."""
    metadata = document.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    name = found.get("name") or f"{found.get('generateName', '')}*"
    return str(found.get("namespace", ""))[:MAX_LOGGED], str(name)[:MAX_LOGGED]
