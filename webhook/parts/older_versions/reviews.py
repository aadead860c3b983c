"""Answers ConversionReviews: the CRD's conversion webhook."""

import asyncio
from collections import Counter
from functools import partial
from time import monotonic
from typing import Final

import msgspec

from webhook.admission import too_large
from webhook.admission.pipelines import DeadlineExceeded
from webhook.api import mpijob
from webhook.api.review import ReviewError
from webhook.converters.report import ConversionError
from webhook.parts.older_versions import both_ways, conversion_review
from webhook.server.http_request import Reply, Request
from webhook.server.limits import MAX_LOGGED_CHARACTERS
from webhook.server.telemetry import Telemetry
from webhook.work_limit import TooExpensive, limited

VERSIONS: Final = (mpijob.API_VERSION, *mpijob.OLDER_VERSIONS)
TOO_EXPENSIVE: Final = "too expensive to convert: it takes more processor time than one job may have"


async def converted(request: Request, telemetry: Telemetry) -> Reply:
    """Answers a ConversionReview; ReviewError if the body is not one, DeadlineExceeded if converting takes too long.

    The event loop serves other requests between two objects. A stored job that is too expensive to convert is replaced
    by a stand-in (`both_ways.NO_JOB`), so that lists of jobs do not fail.
    """
    conversion = conversion_review.decode(request.body)
    version = conversion.desired if conversion.desired in VERSIONS else "unknown"
    objects: list[msgspec.Raw] = []
    outcomes: Counter[str] = Counter()
    for encoded in conversion.objects:
        if objects:
            await asyncio.sleep(0)
        if monotonic() > request.deadline:
            raise DeadlineExceeded("conversion")
        large = too_large.finding(encoded)
        fault = large.violation.message if large else ""
        try:
            new, outcome = _limited(encoded, conversion.desired, fault, telemetry)
        except ConversionError as error:
            namespace, name = _place(encoded)
            telemetry.converted(version, {"refused": 1}, monotonic() - request.started)
            telemetry.log.info("conversion refused", version=version, namespace=namespace, name=name)
            return Reply(conversion_review.encode_failure(conversion.uid, f"MPIJob {namespace}/{name}: {error}"))
        outcomes[outcome] += 1
        objects.append(new)
    telemetry.converted(version, outcomes, monotonic() - request.started)
    return Reply(conversion_review.encode(conversion.uid, objects))


def _limited(encoded: msgspec.Raw, version: str, fault: str, telemetry: Telemetry) -> tuple[msgspec.Raw, str]:
    try:
        return limited(partial(_converted, encoded, version, fault))
    except TooExpensive:
        telemetry.too_expensive("convert", *_place(encoded))
        return _converted(encoded, version, TOO_EXPENSIVE)


def _converted(encoded: msgspec.Raw, version: str, fault: str) -> tuple[msgspec.Raw, str]:
    """Returns the converted object and the outcome. The object is encoded, because this needs less memory. Pods of an
    object with a `fault` are not decoded.
    """
    document = conversion_review.opened(encoded) if fault else conversion_review.document(encoded)
    try:
        new = both_ways.convert(document, version, too_large=fault)
    except RecursionError:
        raise ReviewError("an object is nested too deep") from None
    outcome = "stand-in" if new.get("spec") == both_ways.NO_JOB else "converted"
    return conversion_review.raw(new), outcome


def _place(encoded: msgspec.Raw) -> tuple[str, str]:
    metadata = conversion_review.opened(encoded).get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    name = fields.get("name") or f"{fields.get('generateName', '')}*"
    return str(fields.get("namespace", ""))[:MAX_LOGGED_CHARACTERS], str(name)[:MAX_LOGGED_CHARACTERS]
