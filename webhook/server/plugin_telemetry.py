"""What operators see of plug-ins: which there are, and that one fails, in metrics and in the log."""

import logging
from collections.abc import Iterable
from functools import partial
from typing import Any

from prometheus_client import Gauge

from webhook.plugins.loading import Failures, Plugin
from webhook.server.asked_counter import AskedCounter
from webhook.server.limits import MAX_LOGGED_FAILURES
from webhook.server.log import describe


class PluginTelemetry:
    """Reports plug-ins to the metrics `plugins` and `plugin_failures_total`, and to the log."""

    def __init__(self, states: Gauge, failures: AskedCounter, log: Any) -> None:
        self._states = states
        self._failures = failures
        self._log = log
        self._places: set[tuple[str, ...]] = set()

    def follow(self, found: Iterable[Plugin], failures: Failures) -> None:
        """Report the plug-ins, and from now on their failures: each place once in the log, all of them as a number."""
        for plugin in found:
            self._states.labels(plugin.name, plugin.version, plugin.state).set(1)
            self._log.log(
                logging.WARNING if plugin.faults else logging.INFO,
                "plug-in",
                plugin=plugin.name,
                version=plugin.version,
                state=plugin.state,
                rules=plugin.rules,
                injections=plugin.injections,
                faults=plugin.faults,
            )
        for key in failures.counts:
            self._failures.ask(*key, value=partial(failures.counts.__getitem__, key))
        failures.listener = self._failed

    def _failed(self, kind: str, entry_id: str, error: BaseException) -> None:
        fields = describe(error)
        place = kind, entry_id, fields["error"], *fields["traceback"][-1:]
        if place not in self._places and len(self._places) < MAX_LOGGED_FAILURES:
            self._places.add(place)
            self._log.error("plug-in failed", kind=kind, name=entry_id, **fields)
