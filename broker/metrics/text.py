"""The text of a scrape, in steps: a broker with 10,000 partitions has 200,000 lines.

The lines of the process (`process_...`, `python_...`) and the choice of the format are those of prometheus_client. The
lines of the broker are made here, because a step must be able to end between two of them, and because the library needs
twenty times as long for one (`make bench ARGS=metrics`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from odradek.broker.metrics.family import Family, Kind, summary_lines

if TYPE_CHECKING:
    from odradek.broker.metrics.view import View
    from odradek.timer.sliced_work import Steps

SAMPLES_A_STEP: Final = 100
"""A step takes a tenth of a millisecond."""


class Text:
    """Makes the text of scrapes."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = tuple(families)
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def steps(self, view: View, accept: str, parts: list[bytes]) -> Steps:
        """Append the text to `parts`, in the format that the header `Accept` asks for: see `content_type`."""
        encode, content_type = choose_encoder(accept)
        is_open_metrics = content_type.startswith("application/openmetrics-text")
        for family in self._families:
            lines = [_header(family, is_open_metrics=is_open_metrics)]
            name = family.name
            for number, sample in enumerate(family.read(view), 1):
                if sample is not None:
                    labels, value = sample
                    lines.append(f"{name}{{{labels}}} {+value}\n" if labels else f"{name} {+value}\n")
                if not number % SAMPLES_A_STEP:
                    parts.append("".join(lines).encode())
                    lines.clear()
                    yield None
            if family.histograms is not None:
                for labels, histogram in family.histograms(view):
                    lines.extend(summary_lines(name, labels, histogram))
                    yield None
            parts.append("".join(lines).encode())
            yield None
        parts.append(encode(self._process))


def content_type(accept: str) -> str:
    """The format that is used for this `Accept` header."""
    return choose_encoder(accept)[1]


def _header(family: Family, *, is_open_metrics: bool) -> str:
    name = family.name.removesuffix("_total") if is_open_metrics and family.kind is Kind.COUNTER else family.name
    return f"# HELP {name} {family.description}\n# TYPE {name} {family.kind.value}\n"
