"""Metrics of the quotas of clients: what each client uses, its throttle times, and the connections that are muted.

Apache Kafka has these as MBeans of its client metrics, whose attributes are here the ends of the names.

Kafka: ClientQuotaManager, ClientRequestQuotaManager, ControllerMutationQuotaManager.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.metrics.family import Family, Sample, gauge, gauges
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.view import View
from odradek.broker.quotas.client_quota_manager import ClientQuotaManager
from odradek.broker.quotas.client_sensors import ClientSensors
from odradek.broker.quotas.quota_managers import QuotaManagers

MAX_CLIENTS: Final = 1_000
"""With more clients of one type of quota, none of that type has series."""

Manager = Callable[[QuotaManagers], ClientQuotaManager]

_NO_LABEL: Final = re.compile(r"\W", re.ASCII)


def _of_clients(
    manager: Manager, kind: str, attribute: str, description: str, read: Callable[[ClientSensors, int], float]
) -> Family:
    """A gauge of each client. A callback's tags are labels instead of these."""

    def samples(view: View) -> Iterator[Sample | None]:
        found = manager(view.services.quotas)
        if len(found.sensors) > MAX_CLIENTS:
            return
        for sensors in list(found.sensors):
            value = read(sensors, view.services.clock.monotonic_ms())
            if not math.isnan(value):
                names = found.tag_names(sensors.tags)
                yield labelled(**{_NO_LABEL.sub("_", name): text for name, text in names.items()}), value

    name = f"kafka_server_{kind.lower()}_{attribute.replace('-', '_')}"
    mbean = f"kafka.server:type={kind},user=,client-id=#{attribute}"
    return gauges(name, ("user", "client_id"), description, samples, mbean=mbean)


def _used(manager: Manager, kind: str, attribute: str, what: str) -> Family:
    return _of_clients(
        manager, kind, attribute, f"{what} of a client with a quota.", lambda found, now_ms: found.rate.measure(now_ms)
    )


def _throttle_time(manager: Manager, kind: str) -> Family:
    def average(found: ClientSensors, now_ms: int) -> float:
        return math.nan if found.throttle_times is None else found.throttle_times.measure(now_ms)

    return _of_clients(
        manager,
        kind,
        "throttle-time",
        "Average throttle time of a client in the last minute, in milliseconds.",
        average,
    )


def _queue_size(manager: Manager, kind: str) -> Family:
    return gauge(
        f"kafka_server_{kind.lower()}_queue_size",
        "Connections that are muted because of this quota.",
        lambda view: manager(view.services.quotas).queue_size,
        mbean=f"kafka.server:type={kind}#queue-size",
    )


def _families(manager: Manager, kind: str, attribute: str, what: str) -> tuple[Family, ...]:
    return _used(manager, kind, attribute, what), _throttle_time(manager, kind), _queue_size(manager, kind)


def _exempt(view: View) -> float:
    return view.services.quotas.request.exempt_rate.measure(view.services.clock.monotonic_ms())


QUOTA_FAMILIES: Final = (
    *_families(lambda quotas: quotas.produce, "Produce", "byte-rate", "Bytes per second of Produce requests"),
    *_families(lambda quotas: quotas.fetch, "Fetch", "byte-rate", "Bytes per second of Fetch responses"),
    *_families(lambda quotas: quotas.request, "Request", "request-time", "Percent of the event loop's time"),
    gauge(
        "kafka_server_request_exempt_request_time",
        "Percent of the event loop's time for requests that no quota limits.",
        _exempt,
        mbean="kafka.server:type=Request#exempt-request-time",
    ),
    *_families(
        lambda quotas: quotas.controller_mutation,
        "ControllerMutation",
        "mutation-rate",
        "Partitions created and deleted per second",
    ),
)
