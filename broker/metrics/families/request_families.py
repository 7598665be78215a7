"""Metrics of requests, by API: counts, errors, times and sizes.

Kafka: RequestMetrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.metrics.family import Family, Histograms, Sample, counters, summaries
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.request_metrics import MAX_DEPRECATED, RequestMetrics, error_name
from odradek.broker.metrics.view import View
from odradek.timer.histogram import Histogram

_MBEAN: Final = "kafka.network:type=RequestMetrics,name="
_NAME: Final = "kafka_network_requestmetrics_"

_TIMES: Final = (
    ("RequestQueueTimeMs", "from the arrival of a request to its handler: decoding, and turns of large requests"),
    ("LocalTimeMs", "in the handler"),
    ("RemoteTimeMs", "waiting for replicas, records, group members or the controller"),
    ("ThrottleTimeMs", "that a quota delays the client"),
    ("ResponseQueueTimeMs", "encoding the response and waiting for the responses to earlier requests"),
    ("ResponseSendTimeMs", "until the kernel has all bytes of the response"),
    ("TotalTimeMs", "in all"),
)
"""In the order of `RequestMetrics.TIMES`."""


_CONVERTING: Final = ("Fetch", "Produce")


def _requests(view: View) -> Iterator[Sample]:
    for name, metrics in sorted(view.requests.by_name.items()):
        for version, count in sorted(metrics.by_version.items()):
            yield labelled(request=name, version=version), count


def _errors(view: View) -> Iterator[Sample]:
    for name, metrics in sorted(view.requests.by_name.items()):
        for code, count in sorted(metrics.errors.items()):
            yield labelled(request=name, error=error_name(code)), count


def _deprecated(view: View) -> Iterator[Sample]:
    for request, metrics in sorted(view.requests.by_name.items()):
        for version, counts in sorted(metrics.deprecated.items()):
            for (name, software_version), count in list(counts.items()):
                labels = labelled(
                    request=request,
                    version=version,
                    clientSoftwareName=name,
                    clientSoftwareVersion=software_version,
                )
                yield labels, count


def _time(index: int, mbean: str, what: str) -> Family:
    def read(view: View) -> Histograms:
        for name, metrics in sorted(view.requests.by_name.items()):
            metrics.settle()
            yield labelled(request=name), metrics.times[index]

    return summaries(
        f"{_NAME}{mbean.lower()}",
        ("request",),
        f"Milliseconds {what}, of the last five minutes.",
        read,
        mbean=f"{_MBEAN}{mbean},request=",
    )


def _request_bytes(view: View) -> Histograms:
    for name, metrics in sorted(view.requests.by_name.items()):
        yield labelled(request=name), metrics.request_bytes


def _of_converting(histogram: Callable[[RequestMetrics], Histogram]) -> Callable[[View], Histograms]:
    """The samples of a histogram that requests with records have."""

    def read(view: View) -> Histograms:
        for name in _CONVERTING:
            metrics = view.requests.by_name.get(name)
            if metrics is not None:
                metrics.settle()
                yield labelled(request=name), histogram(metrics)

    return read


assert len(_TIMES) == len(RequestMetrics.TIMES)

REQUEST_FAMILIES: Final = (
    counters(
        f"{_NAME}requests_total",
        ("request", "version"),
        "Requests by API and version.",
        _requests,
        mbean=f"{_MBEAN}RequestsPerSec,request=,version=",
    ),
    counters(
        f"{_NAME}errors_total",
        ("request", "error"),
        "Error codes in responses; NONE for success.",
        _errors,
        mbean=f"{_MBEAN}ErrorsPerSec,request=,error=",
    ),
    counters(
        f"{_NAME}deprecatedrequests_total",
        ("request", "version", "clientSoftwareName", "clientSoftwareVersion"),
        "Requests in versions that Apache Kafka 4.0 does not serve any more, by the client software that sent them; "
        f"of an API in one version {MAX_DEPRECATED} are told apart, and the rest is `other`.",
        _deprecated,
        mbean=f"{_MBEAN}DeprecatedRequestsPerSec,request=,version=,clientSoftwareName=,clientSoftwareVersion=",
    ),
    *(_time(index, mbean, what) for index, (mbean, what) in enumerate(_TIMES)),
    summaries(
        f"{_NAME}requestbytes",
        ("request",),
        "Bytes of requests, of the last five minutes.",
        _request_bytes,
        mbean=f"{_MBEAN}RequestBytes,request=",
    ),
    summaries(
        f"{_NAME}messageconversionstimems",
        ("request",),
        "Milliseconds of writing records anew, of the last five minutes: produced ones, and those for old consumers.",
        _of_converting(lambda metrics: metrics.message_conversions_time),
        mbean=f"{_MBEAN}MessageConversionsTimeMs,request=",
    ),
    summaries(
        f"{_NAME}temporarymemorybytes",
        ("request",),
        "Bytes of memory that writing records anew took, of the last five minutes; 0 for compressed records that stay "
        "as they are, which Apache Kafka decompresses.",
        _of_converting(lambda metrics: metrics.temporary_memory_bytes),
        mbean=f"{_MBEAN}TemporaryMemoryBytes,request=",
    ),
)
