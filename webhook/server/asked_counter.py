"""A counter that somebody else keeps: its values are asked for whenever the metrics are read."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector


class AskedCounter(Collector):
    """A metric of type counter, with values from functions: prometheus_client's own Counter can only be added to."""

    def __init__(self, name: str, text: str, labels: Sequence[str], *, registry: CollectorRegistry) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._values: dict[tuple[str, ...], Callable[[], float]] = {}
        registry.register(self)

    def ask(self, *labels: str, value: Callable[[], float]) -> None:
        """From now on `value` has the count for these labels."""
        self._values[labels] = value

    def describe(self) -> list[Metric]:
        """The metric without values."""
        return [self._family()]

    def collect(self) -> Iterator[Metric]:
        """The metric with the values of now."""
        family = self._family()
        for labels, value in self._values.items():
            family.add_metric(labels, value())
        yield family

    def _family(self) -> CounterMetricFamily:
        return CounterMetricFamily(self._name, self._text, labels=self._labels)
