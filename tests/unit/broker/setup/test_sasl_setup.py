from __future__ import annotations

import random
from types import SimpleNamespace
from typing import ClassVar, cast

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.machine import Machine
from odradek.broker.metadata.metadata_cache import MetadataCache
from odradek.broker.network.authentication.authentication import Authentications
from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
from odradek.broker.network.connection.connection import Connection
from odradek.broker.security.sasl.callback_handlers import PlainCallbackHandler
from odradek.broker.setup.sasl_setup import make_authentications, make_sasl_parts
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.storage.disk.ports import InlineIoPool
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.connections.network import FakeOwner
from tests.support.in_process.security.sasl_contexts import Credentials, slots


def authentications(config: BrokerConfig) -> Authentications:
    clock = ManualClock()
    machine = cast("Machine", SimpleNamespace(io_pool=InlineIoPool(), rng=random.Random(1), handler_slots=slots()))
    parts = make_sasl_parts(clock, machine, Credentials(), None)
    return make_authentications(config, parts, SystemTimer(clock), lambda work: work.close(), MetadataCache(0))


def test_the_listeners_of_the_configuration_authenticate() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://:1,AUTH://:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.auth.scram-sha-256.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
        }
    )
    made = authentications(config)
    made.load_listeners()
    connection = Connection(FakeOwner(), "AUTH", 1_000, SecurityProtocol.SASL_PLAINTEXT)
    made.begin(connection, lambda mechanism, user: user, AuthenticationCounts())
    assert not connection.is_authenticated


class Unclosable(PlainCallbackHandler):
    closed: ClassVar[list[str]] = []

    def verify(self, user: str, password: str) -> bool:
        return True

    def close(self) -> None:
        self.closed.append("closed")
        raise LookupError("it is gone")


def test_a_callback_handler_that_cannot_be_closed_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    Unclosable.closed.clear()
    settings = {
        "listeners": "PLAINTEXT://:1,A://:2,B://:3",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    for name in "ab":
        prefix = f"listener.name.{name}.plain.sasl"
        settings[f"{prefix}.jaas.config"] = "org.apache.kafka.common.security.plain.PlainLoginModule required;"
        settings[f"{prefix}.server.callback.handler.class"] = f"{__name__}:Unclosable"
    made = authentications(BrokerConfig(settings))
    made.load_listeners()
    made.close()
    assert Unclosable.closed == ["closed", "closed"]
    assert "Cannot close the callback handler of PLAIN" in caplog.text
