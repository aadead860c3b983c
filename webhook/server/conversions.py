"""Reviews of the CRD's conversion webhook: jobs in the version that somebody asks for."""

import asyncio
from collections import Counter
from time import monotonic
from typing import Any, Final

import msgspec

from webhook.admission.pipelines import DeadlineExceeded
from webhook.api import conversion_review, mpijob
from webhook.api.review import ReviewError
from webhook.converters import both_ways
from webhook.converters.report import ConversionError
from webhook.server.log import MAX_LOGGED
from webhook.server.requests import Reply, Request
from webhook.server.telemetry import Telemetry

KNOWN: Final = (mpijob.API_VERSION, *mpijob.OLDER_VERSIONS)


async def converted(request: Request, telemetry: Telemetry) -> Reply:
    """The reply to a ConversionReview. What cannot be converted is no fault of ours: the reply says why.

    Others have their turn between two objects; ReviewError for what is no such review, DeadlineExceeded, and Refused
    where the objects take too much memory.
    """
    asked = conversion_review.decode(request.body)
    version = asked.desired if asked.desired in KNOWN else "unknown"
    found: list[msgspec.Raw] = []
    size = request.size
    outcomes: Counter[str] = Counter()
    for written in asked.objects:
        if found:
            await asyncio.sleep(0)
        if monotonic() > request.deadline:
            raise DeadlineExceeded("conversion")
        document = conversion_review.document(written)
        try:
            new = both_ways.convert(document, asked.desired)
        except RecursionError:
            raise ReviewError("an object is nested too deep") from None
        except ConversionError as error:
            namespace, name = _place(document)
            telemetry.converted(version, {"refused": 1}, monotonic() - request.started)
            telemetry.log.info("conversion refused", version=version, namespace=namespace, name=name)
            message = f"MPIJob {namespace}/{name}: {error}"
            return Reply(conversion_review.encode_failure(asked.uid, message))
        outcomes["stand-in" if new.get("spec") == both_ways.NO_JOB else "converted"] += 1
        found.append(conversion_review.raw(new))
        size += len(found[-1])
        request.hold(size)
        del document, new  # before others have their turn
    telemetry.converted(version, outcomes, monotonic() - request.started)
    return Reply(conversion_review.encode(asked.uid, found))


def _place(document: dict[str, Any]) -> tuple[str, str]:
    """Namespace and name, as far as they can be read."""
    metadata = document.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    name = found.get("name") or f"{found.get('generateName', '')}*"
    return str(found.get("namespace", ""))[:MAX_LOGGED], str(name)[:MAX_LOGGED]
