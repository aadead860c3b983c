"""Counters and histograms of the hot path: plain numbers, added to by the event loop alone.

prometheus_client's own take a lock and several calls for each step, which costs a review more than its log line does.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Tally(Collector):
    """A metric of type counter: `counts` has a number for each tuple of label values."""

    def __init__(self, name: str, text: str, labels: Sequence[str], *, registry: CollectorRegistry) -> None:
        self.counts: dict[tuple[str, ...], int] = {}
        self._name = name
        self._text = text
        self._labels = labels
        registry.register(self)

    def add(self, labels: tuple[str, ...], number: int = 1) -> None:
        """Count `number` more for these label values."""
        self.counts[labels] = self.counts.get(labels, 0) + number

    def describe(self) -> list[Metric]:
        """The metric without values."""
        return [self._family()]

    def collect(self) -> Iterator[Metric]:
        """The metric with the numbers of now."""
        family = self._family()
        # A copy, as another thread may read the metrics.
        for labels, number in self.counts.copy().items():
            family.add_metric(labels, number)
        yield family

    def _family(self) -> CounterMetricFamily:
        return CounterMetricFamily(self._name, self._text, labels=self._labels)


class Durations(Collector):
    """A metric of type histogram with one label; `buckets` are upper bounds in seconds."""

    def __init__(
        self, name: str, text: str, label: str, buckets: Sequence[float], *, registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._text = text
        self._label = label
        self._buckets = buckets
        self._bounds = [*map(floatToGoString, buckets), "+Inf"]
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        registry.register(self)

    def add(self, label: str, seconds: float) -> None:
        """Count one observation."""
        if label not in self._counts:
            self._counts[label] = [0] * len(self._bounds)
            self._sums[label] = 0.0
        self._counts[label][bisect_left(self._buckets, seconds)] += 1
        self._sums[label] += seconds

    def describe(self) -> list[Metric]:
        """The metric without values."""
        return [self._family()]

    def collect(self) -> Iterator[Metric]:
        """The metric with the numbers of now; Prometheus' buckets hold all that is at most their bound."""
        family = self._family()
        for label, counts in self._counts.copy().items():
            total = 0
            buckets = []
            for bound, count in zip(self._bounds, counts.copy(), strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric([label], buckets, self._sums[label])
        yield family

    def _family(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._name, self._text, labels=[self._label])
