"""The request log: one line for each request with its response, when both are over.

    Completed request:{"isForwarded":false,"requestHeader":{...},"request":{...},"response":{...},"connection":"...",
    "totalTimeMs":0.25, ...}

The line is that of Apache Kafka: at DEBUG, or at INFO for versions of APIs that it calls deprecated (KIP-896). It has
no secrets and no records, and is bounded in size and number (`protocol/loggable_json.py`, `LINES_PER_S`). Levels are
those of `machine/logger_levels.py`: for all clients, and for single client ids.

Observers may not keep requests and responses, so their JSON is made during the call. This module is imported, and
requests are observed, only when a level enables the log.

Kafka: RequestChannel.Request.updateRequestMetrics, RequestConvertToJson.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.log_setup import REQUEST_LOGGER
from odradek.protocol.api import API, ApiKey
from odradek.protocol.deprecated_versions import is_deprecated
from odradek.protocol.loggable_json import loggable
from odradek.protocol.message_json import json_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.machine.logger_levels import LoggerLevels
    from odradek.broker.network.requests.request import RequestContext, RequestTimes
    from odradek.protocol.codec.schema import Request, Response
    from odradek.protocol.message_json import Json
    from odradek.timer.clock import Clock

logger = logging.getLogger(REQUEST_LOGGER)

LINES_PER_S: Final = 200
"""More requests than this in a second are not logged; the next line says how many."""


class RequestLog:
    """An observer of requests. `is_secret` tells from the name of a config whether its value may be shown."""

    __slots__ = ("_clock", "_is_secret", "_left_out", "_levels", "_lines", "_open", "_second")

    def __init__(self, levels: LoggerLevels, clock: Clock, is_secret: Callable[[str], bool]) -> None:
        self._levels = levels
        self._clock = clock
        self._is_secret = is_secret
        self._open: dict[RequestContext, dict[str, Json]] = {}
        """The lines of requests that are not over."""
        self._second = 0
        self._lines = 0
        """Lines in this second."""
        self._left_out = 0

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        header = ctx.header
        is_old = is_deprecated(ApiKey(header.api_key), header.api_version)
        level = self._levels.request_level(header.client_id)
        if level > (logging.INFO if is_old else logging.DEBUG):
            return
        if not self._has_room():
            self._left_out += 1
            return
        shown: dict[str, Json] = {
            "requestApiKey": header.api_key,
            "requestApiVersion": header.api_version,
            "correlationId": header.correlation_id,
            "clientId": header.client_id,
            "requestApiKeyName": API[header.api_key].key.name,
        }
        if is_old:
            shown["requestApiVersionDeprecated"] = True
        self._open[ctx] = {
            "isForwarded": False,
            "requestHeader": shown,
            "request": loggable(request, header.api_version, self._is_secret),
            "response": "",
        }

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        line = self._open.get(ctx)
        if line is not None and response is not None:
            line["response"] = loggable(response, ctx.header.api_version, self._is_secret)

    def request_completed(self, ctx: RequestContext) -> None:
        line = self._open.pop(ctx, None)
        if line is None:
            return
        if ctx.times is not None:
            line |= _facts(ctx, ctx.times)
        is_old = is_deprecated(ApiKey(ctx.header.api_key), ctx.header.api_version)
        left_out, self._left_out = self._left_out, 0
        more = f" ({left_out} more requests were not logged)" if left_out else ""
        level = logging.INFO if is_old else logging.DEBUG
        # The level of a single client may be below that of the logger.
        record = logger.makeRecord(
            logger.name, level, __file__, 0, "Completed request:%s%s", (json_text(line), more), None
        )
        logger.handle(record)

    def _has_room(self) -> bool:
        second = self._clock.monotonic_ms() // 1_000
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        return self._lines <= LINES_PER_S


def _facts(ctx: RequestContext, times: RequestTimes) -> dict[str, Json]:
    connection = ctx.connection
    facts: dict[str, Json] = {
        "connection": (
            f"{connection.local_host}:{connection.local_port}-{connection.client_host}:{connection.client_port}-0"
        ),
        "totalTimeMs": _ms(times.completed_ns - times.started_ns),
        "requestQueueTimeMs": _ms(times.dequeued_ns - times.started_ns),
        "localTimeMs": _ms(times.local_completed_ns - times.dequeued_ns),
        "remoteTimeMs": _ms(times.response_completed_ns - times.local_completed_ns),
        "throttleTimeMs": times.throttle_ms,
        "responseQueueTimeMs": _ms(times.response_dequeued_ns - times.response_completed_ns),
        "sendTimeMs": _ms(times.completed_ns - times.response_dequeued_ns),
        "securityProtocol": connection.security_protocol.name,
        "principal": connection.principal,
        "listener": connection.listener_name,
        "clientInformation": {
            "softwareName": connection.client_software_name,
            "softwareVersion": connection.client_software_version,
        },
    }
    if times.temporary_bytes:
        facts["temporaryMemoryBytes"] = times.temporary_bytes
    if times.message_conversions_ns:
        facts["messageConversionsTime"] = _ms(times.message_conversions_ns)
    return facts


def _ms(duration_ns: int) -> float:
    """Milliseconds with three decimal places, at least 0."""
    return max(0, duration_ns) // 1_000 / 1_000
