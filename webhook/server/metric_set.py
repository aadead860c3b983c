"""The metrics of a table in a registry: some are written whenever something happens, others are read on each scrape."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.server.metrics import Metric

Value = tuple[str, tuple[str, ...], float]
"""The short name of a metric, the values of its labels, and its value now."""

# In this format they would be gauges beside each counter and histogram: a third more series, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Children(dict[tuple[str, ...], Any]):
    """A metric's children by label values, made once: each call of `labels()` takes a lock and copies."""

    def __init__(self, metric: Metric, registry: CollectorRegistry) -> None:
        super().__init__()
        if metric.kind == "histogram":
            self._metric: Any = Histogram(
                metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets
            )
        else:
            self._metric = _KINDS[metric.kind](metric.name, metric.help, metric.labels, registry=registry)

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        child = self[labels] = self._metric.labels(*labels) if labels else self._metric
        return child


_KINDS: Final[dict[str, Any]] = {"counter": Counter, "gauge": Gauge}
_FAMILIES: Final[dict[str, Any]] = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}


class MetricSet(Collector):
    """The metrics of a table, by their short names."""

    def __init__(self, metrics: Iterable[Metric], registry: CollectorRegistry) -> None:
        self._read = [metric for metric in metrics if metric.on_scrape]
        self._written = {metric.short: _Children(metric, registry) for metric in metrics if not metric.on_scrape}
        self._sources: list[Callable[[], Iterable[Value]]] = []
        registry.register(self)

    def add(self, name: str, *labels: str, amount: float = 1) -> None:
        """Add to a counter; with `amount` 0 its series begins, as a rate has no first step where there is none."""
        self._written[name][labels].inc(amount)

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._written[name][labels].set(value)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        self._written[name][labels].observe(value)

    def on_scrape(self, source: Callable[[], Iterable[Value]]) -> None:
        """Ask `source` for values on each scrape from now on. The scrape may be in another thread."""
        self._sources.append(source)

    def describe(self) -> Iterator[Family]:
        """The metrics that are read on a scrape, without values."""
        return (_FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels) for metric in self._read)

    def collect(self) -> Iterator[Family]:
        """These metrics with the values of now."""
        families = {metric.short: family for metric, family in zip(self._read, self.describe(), strict=True)}
        for source in self._sources:
            for name, labels, value in source():
                families[name].add_metric(labels, value)  # type: ignore[attr-defined]
        yield from families.values()
