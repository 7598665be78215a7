"""What a metric is: its name and labels, what it means, the MBean that Apache Kafka has for it, and how it is read.

The names are those that the Prometheus JMX exporter makes of Apache Kafka's MBeans with the rules that Strimzi ships
(`kafka-metrics`), a superset of the exporter's own example `kafka-2_0_0.yml`:

- the name of a gauge is that of its MBean in lower case, `kafka_DOMAIN_TYPE_NAME`, with the MBean's tags as labels;
- a meter `...PerSec` is a counter `..._total`;
- of a meter with another name the count is `..._count`, a gauge here: OpenMetrics has no counter of such a name;
- a histogram is a gauge with the label `quantile`, and a counter `..._count`;
- of a gauge `...Percent` the name ends in `_percent`.

Kafka: KafkaMetricsGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.metrics.labels import Labels
from odradek.timer.histogram import QUANTILES, Histogram

if TYPE_CHECKING:
    from odradek.broker.metrics.view import View

Sample = tuple[Labels, float]
Samples = Iterable[Sample | None]
"""None is a pause: other work may run there, as between two samples."""

Histograms = Iterable[tuple[Labels, Histogram]]

NOT_IN_JMX: Final = ""
"""For metrics that Apache Kafka has no MBean for."""


class Kind(Enum):
    """The types of the text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. `read` gives its samples, one after the other: other work may run between two of them."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    description: str
    mbean: str
    """Apache Kafka's name without the values of the tags, or `NOT_IN_JMX`."""
    read: Callable[[View], Samples]
    histograms: Callable[[View], Histograms] | None = None
    """For a summary, which `read` does not serve."""


def _bare(kind: Kind, name: str, description: str, read: Callable[[View], float], *, mbean: str = NOT_IN_JMX) -> Family:
    """A metric without labels."""
    return Family(name, kind, (), description, mbean, lambda view: (("", read(view)),))


def _labelled(
    kind: Kind,
    name: str,
    labels: tuple[str, ...],
    description: str,
    read: Callable[[View], Samples],
    *,
    mbean: str = NOT_IN_JMX,
) -> Family:
    """A metric with labels."""
    return Family(name, kind, labels, description, mbean, read)


gauge: Final = partial(_bare, Kind.GAUGE)
counter: Final = partial(_bare, Kind.COUNTER)
gauges: Final = partial(_labelled, Kind.GAUGE)
counters: Final = partial(_labelled, Kind.COUNTER)


def summaries(
    name: str,
    labels: tuple[str, ...],
    description: str,
    histograms: Callable[[View], Histograms],
    *,
    mbean: str = NOT_IN_JMX,
) -> Family:
    """The quantiles and the count of histograms."""
    return Family(name, Kind.SUMMARY, (*labels, "quantile"), description, mbean, lambda view: (), histograms)


def summary_lines(name: str, labels: Labels, histogram: Histogram) -> Iterable[str]:
    """The lines of one histogram."""
    before = f"{labels}," if labels else ""
    for quantile, value in zip(QUANTILES, histogram.quantiles(), strict=True):
        digits = 2 if quantile < 0.999 else 3
        yield f'{name}{{{before}quantile="{quantile:.{digits}f}"}} {value}\n'
    yield f"{name}_count{{{labels}}} {histogram.count}\n" if labels else f"{name}_count {histogram.count}\n"
