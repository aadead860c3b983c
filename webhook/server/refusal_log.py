"""What the log says of refused requests: whoever reaches the port makes thousands in a second, in few bytes each."""

from collections import Counter
from time import monotonic
from typing import Any, NamedTuple

from webhook.server.connections import TELL_SECONDS
from webhook.server.limits import MAX_LOGGED_REFUSALS


class Refusal(NamedTuple):
    """What one line says."""

    webhook: str | None
    code: int
    reason: str
    peer: str | None


class RefusalLog:
    """Tells the first of its like at once, and how many more there were with the first one after `TELL_SECONDS`."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._since = float("-inf")
        self._more: Counter[Refusal] = Counter()
        """Those that were told, and how often each has come again."""
        self._others = 0
        """How many came that are not among them."""

    def tell(self, refusal: Refusal) -> None:
        """Another request was refused."""
        if monotonic() - self._since >= TELL_SECONDS:
            self._tell_more()
        if refusal in self._more:
            self._more[refusal] += 1
        elif len(self._more) < MAX_LOGGED_REFUSALS:
            self._more[refusal] = 0
            self._log.warning("refused", **refusal._asdict())
        else:
            self._others += 1

    def _tell_more(self) -> None:
        for refusal, count in self._more.items():
            if count:
                self._log.warning("refused again", **refusal._asdict(), count=count)
        if self._others:
            self._log.warning("others refused", count=self._others)
        self._since, self._others = monotonic(), 0
        self._more.clear()
