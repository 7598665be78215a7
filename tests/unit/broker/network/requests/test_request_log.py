"""Lines of the request log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import cast

import pytest

from odradek.broker.machine.log_setup import REQUEST_LOGGER
from odradek.broker.machine.logger_levels import CLIENT_PREFIX, LoggerLevels
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.requests.request_log import LINES_PER_S, RequestLog
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest
from odradek.timer.clock import ManualClock
from tests.support.in_process.connections.dispatching import Broker

CLIENT = "orders"


class Logged:
    def __init__(self, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
        self.broker = broker
        self.clock = cast("ManualClock", broker.owner.clock)
        self.levels = LoggerLevels()
        self.log = RequestLog(self.levels, self.clock, lambda name: True)
        broker.dispatcher.observe(self.log)
        broker.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: ctx.reply(HeartbeatResponse(error_code=25)))
        broker.serve(ApiKey.LIST_OFFSETS, lambda services, ctx, request: ctx.reply(ListOffsetsResponse()))
        self._caplog = caplog

    def heartbeat(self, client_id: str = CLIENT) -> None:
        header = RequestHeader(ApiKey.HEARTBEAT, 4, 5, client_id)
        self.broker.send(encode_request(header, HeartbeatRequest(group_id="g", generation_id=3, member_id="m")))
        self.broker.answer(ApiKey.HEARTBEAT, 4)

    def old_list_offsets(self) -> None:
        self.broker.call(ListOffsetsRequest(), 0)

    @property
    def messages(self) -> list[str]:
        return [record.getMessage() for record in self._caplog.records if record.name == REQUEST_LOGGER]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Logged]:
    broker = Broker()
    logger = logging.getLogger(REQUEST_LOGGER)
    logger.setLevel(logging.WARNING)
    yield Logged(broker, caplog)
    logger.setLevel(logging.WARNING)
    broker.close()


def test_line_of_a_request(logged: Logged) -> None:
    logged.levels.set_level(CLIENT_PREFIX + CLIENT, "DEBUG")
    logged.heartbeat()
    (message,) = logged.messages
    assert message.startswith("Completed request:{")
    line = json.loads(message.removeprefix("Completed request:"))
    assert line["requestHeader"] == {
        "requestApiKey": 12,
        "requestApiVersion": 4,
        "correlationId": 5,
        "clientId": CLIENT,
        "requestApiKeyName": "HEARTBEAT",
    }
    assert line["request"] == {"groupId": "g", "generationId": 3, "memberId": "m", "groupInstanceId": None}
    assert line["response"] == {"throttleTimeMs": 0, "errorCode": 25}
    assert (line["isForwarded"], line["securityProtocol"], line["totalTimeMs"]) == (False, "PLAINTEXT", 0.0)
    assert logged.log._open == {}


def test_protocol_and_principal_are_those_of_the_connection(logged: Logged) -> None:
    logged.levels.set_level(CLIENT_PREFIX + CLIENT, "DEBUG")
    connection = logged.broker.link.connection
    connection.security_protocol, connection.principal = SecurityProtocol.SASL_SSL, "User:alice"
    logged.heartbeat()
    (message,) = logged.messages
    line = json.loads(message.removeprefix("Completed request:"))
    assert (line["securityProtocol"], line["principal"]) == ("SASL_SSL", "User:alice")


def test_only_the_client_that_was_asked_for(logged: Logged) -> None:
    logged.levels.set_level(CLIENT_PREFIX + CLIENT, "TRACE")
    logged.heartbeat("other")
    assert logged.messages == []


def test_deprecated_versions_are_logged_at_info(logged: Logged) -> None:
    logged.levels.set_level(REQUEST_LOGGER, "INFO")
    logged.heartbeat()
    logged.old_list_offsets()
    (message,) = logged.messages
    header = json.loads(message.removeprefix("Completed request:"))["requestHeader"]
    assert header["requestApiVersionDeprecated"] is True


def test_number_of_lines_a_second_is_bounded(logged: Logged) -> None:
    logged.levels.set_level(REQUEST_LOGGER, "DEBUG")
    for _ in range(LINES_PER_S + 50):
        logged.heartbeat()
    assert len(logged.messages) == LINES_PER_S
    logged.clock.advance(1_000)
    logged.heartbeat()
    assert logged.messages[-1].endswith("} (50 more requests were not logged)")


def test_request_without_an_answer_is_forgotten(logged: Logged) -> None:
    contexts: list[RequestContext] = []
    logged.broker.serve(ApiKey.SYNC_GROUP, lambda services, ctx, request: contexts.append(ctx))
    logged.levels.set_level(REQUEST_LOGGER, "DEBUG")
    logged.broker.send(encode_request(RequestHeader(ApiKey.SYNC_GROUP, 5, 5, CLIENT), SyncGroupRequest()))
    assert len(logged.log._open) == 1
    contexts[0].close_connection()
    assert logged.log._open == {}
    (message,) = logged.messages
    assert json.loads(message.removeprefix("Completed request:"))["response"] == ""
