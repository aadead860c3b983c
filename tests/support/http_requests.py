"""What the review port makes of bytes: requests, and why it reads no more."""

from typing import NamedTuple

from webhook.server.http_reader import RequestReader
from webhook.server.memory import MemoryBudget
from webhook.server.requests import Refused, Request


class Read(NamedTuple):
    """What was read."""

    requests: list[Request]
    stopped: str
    """Why nothing can follow; empty while more can."""

    @property
    def complete(self) -> list[tuple[bytes, bytes, bytes]]:
        """Method, target and body of the requests that are whole and not refused."""
        return [(each.method, each.target, each.body) for each in self.requests if each.complete and not each.refused]


def read(*pieces: bytes, memory: MemoryBudget | None = None) -> Read:
    """Read the pieces one after the other, until nothing can follow."""
    budget = memory or MemoryBudget()
    begun: list[Request] = []
    reader = RequestReader(begun.append, lambda: budget.claim("peer"))
    try:
        for piece in pieces:
            reader.feed(piece)
    except Refused as refused:
        return Read(begun, refused.reason)
    return Read(begun, "")
