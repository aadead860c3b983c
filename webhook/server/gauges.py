"""Gauges of `/metrics/jobs` that are worked out whenever they are read."""

from collections.abc import Mapping
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily

from webhook.server.metrics import Metric

READ: Final = "The same on every replica: take the max, never the sum."


def gauge(metric: Metric, values: Mapping[Any, float] | None = None) -> GaugeMetricFamily:
    """The metric with these values, by a tuple of label values; without any it is only described."""
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in (values or {}).items():
        family.add_metric(labels, value)
    return family
