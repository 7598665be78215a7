from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.security.sasl.mechanisms import SaslParts, enabled_mechanisms, java_hash_set_order, sasl_context
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.ports import InlineIoPool
from odradek.timer.clock import ManualClock
from tests.support.in_process.security.sasl_contexts import Credentials

PARTS = SaslParts(ManualClock(), InlineIoPool(), bytes, Credentials(), None)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required user_a=b;"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig(
        {
            "listeners": "PLAINTEXT://:1,AUTH://:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT",
            "listener.name.auth.plain.sasl.jaas.config": PLAIN,
            "listener.name.auth.scram-sha-512.sasl.jaas.config": SCRAM,
            **settings,
        }
    )


def test_the_most_specific_setting_counts() -> None:
    one = config(
        **{
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.auth.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "connections.max.reauth.ms": "1",
            "listener.name.auth.scram-sha-512.connections.max.reauth.ms": "2",
        }
    )
    enabled = enabled_mechanisms(one, "AUTH", PARTS)
    assert {name: mechanism.max_reauth_ms for name, mechanism in enabled.items()} == {"PLAIN": 1, "SCRAM-SHA-512": 2}


def test_the_entry_needs_the_prefix_of_the_mechanism() -> None:
    one = config(**{"sasl.jaas.config": SCRAM, "listener.name.auth.sasl.jaas.config": SCRAM})
    with pytest.raises(ConfigError, match=r"Could not find a 'KafkaServer' or 'auth\.KafkaServer' entry"):
        sasl_context(one, "AUTH", "SCRAM-SHA-256", PARTS)


def test_the_order_is_that_of_a_java_hash_set() -> None:
    """As in the answer of Apache Kafka to SaslHandshake."""
    assert java_hash_set_order(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]) == APACHE_ORDER


APACHE_ORDER = ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]
