"""Moments as administrators write them: `2027-02-01`, the start of that day in UTC, or `2027-02-01T08:00:00+01:00`.

A time without a zone is refused: on a server, in a browser and in a team of three countries it would be another moment.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(rf"{_DAY.pattern}T[0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}})?(?P<zone>Z|[-+][0-9]{{2}}:[0-9]{{2}})?")


class MomentError(ValueError):
    """The text is no moment; the message is a short predicate, to stand after the text."""


@lru_cache(maxsize=1024)
def parse(text: str) -> datetime:
    """The moment in `text`, in UTC; MomentError for anything else."""
    try:
        if _DAY.fullmatch(text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        if (found := _TIME.fullmatch(text)) and not found["zone"]:
            raise MomentError(f"names no time zone: write {text}Z for UTC, or its distance as in {text}+01:00")
        if found:
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        if isinstance(error, MomentError):
            raise
        raise MomentError("is in no calendar") from None
    raise MomentError("is neither a day such as 2027-02-01 nor a time such as 2027-02-01T08:00:00Z")
