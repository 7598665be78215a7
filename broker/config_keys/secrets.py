"""Delegation tokens and the encryption of secrets kept in ZooKeeper."""

from __future__ import annotations

from typing import Final

from odradek.broker.config_keys.key import BrokerConfigKey
from odradek.storage.config_def import ConfigType, Importance, at_least

SECRET_KEYS: Final = (
    BrokerConfigKey(
        "delegation.token.master.key",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "",
    ),
    BrokerConfigKey(
        "delegation.token.secret.key",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "",
    ),
    BrokerConfigKey(
        "delegation.token.max.lifetime.ms",
        ConfigType.LONG,
        "604800000",
        Importance.MEDIUM,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "delegation.token.expiry.time.ms",
        ConfigType.LONG,
        "86400000",
        Importance.MEDIUM,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "delegation.token.expiry.check.interval.ms",
        ConfigType.LONG,
        "3600000",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "password.encoder.secret",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "",
    ),
    BrokerConfigKey(
        "password.encoder.old.secret",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "",
    ),
    BrokerConfigKey(
        "password.encoder.keyfactory.algorithm",
        ConfigType.STRING,
        None,
        Importance.LOW,
        "",
    ),
    BrokerConfigKey(
        "password.encoder.cipher.algorithm",
        ConfigType.STRING,
        "AES/CBC/PKCS5Padding",
        Importance.LOW,
        "",
    ),
    BrokerConfigKey(
        "password.encoder.key.length",
        ConfigType.INT,
        "128",
        Importance.LOW,
        "",
        at_least(8),
    ),
    BrokerConfigKey(
        "password.encoder.iterations",
        ConfigType.INT,
        "4096",
        Importance.LOW,
        "",
        at_least(1024),
    ),
)
