"""What the log says of refused connections and requests: a client can make thousands in a second, in few bytes each."""

from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from webhook.server.limits import MAX_LOGGED_REFUSALS

TELL_SECONDS: Final = 10.0


class RefusalLog:
    """Logs the first of a kind at once, and how many more there were with the first one after `TELL_SECONDS`."""

    def __init__(self, log: Any, clock: Callable[[], float] = monotonic) -> None:
        self._log = log
        self._clock = clock
        self._since = float("-inf")
        self._more: Counter[tuple[str, tuple[tuple[str, Any], ...]]] = Counter()
        """Those that were logged, and how often each has come again."""
        self._others = 0
        """How many came that are not among them."""

    def tell(self, event: str, **fields: Any) -> None:
        """Something was refused, as `fields` say."""
        if self._clock() - self._since >= TELL_SECONDS:
            self._tell_more()
        kind = event, tuple(fields.items())
        if kind in self._more:
            self._more[kind] += 1
        elif len(self._more) < MAX_LOGGED_REFUSALS:
            self._more[kind] = 0
            self._log.warning(event, **fields)
        else:
            self._others += 1

    def _tell_more(self) -> None:
        for (event, fields), count in self._more.items():
            if count:
                self._log.warning(f"{event} again", **dict(fields), count=count)
        if self._others:
            self._log.warning("others refused", count=self._others)
        self._since, self._others = self._clock(), 0
        self._more.clear()
