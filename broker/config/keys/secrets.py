"""Keys of delegation tokens, and of the encryption of passwords in the metadata.

Kafka: DelegationTokenManagerConfigs, PasswordEncoderConfigs.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey
from odradek.storage.config.config_def import ConfigType, Importance, at_least

SECRET_KEYS: Final = (
    BrokerConfigKey(
        "delegation.token.master.key",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "Deprecated name of delegation.token.secret.key.",
    ),
    BrokerConfigKey(
        "delegation.token.secret.key",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "Secret that signs delegation tokens, the same on all brokers; without it there are none.",
    ),
    BrokerConfigKey(
        "delegation.token.max.lifetime.ms",
        ConfigType.LONG,
        "604800000",
        Importance.MEDIUM,
        "Time after which a token cannot be renewed any more.",
        at_least(1),
    ),
    BrokerConfigKey(
        "delegation.token.expiry.time.ms",
        ConfigType.LONG,
        "86400000",
        Importance.MEDIUM,
        "Time for which a token is valid without renewal.",
        at_least(1),
    ),
    BrokerConfigKey(
        "delegation.token.expiry.check.interval.ms",
        ConfigType.LONG,
        "3600000",
        Importance.LOW,
        "How often expired tokens are removed.",
        at_least(1),
    ),
    BrokerConfigKey(
        "password.encoder.secret",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "Secret with which passwords among dynamic configs are encrypted.",
    ),
    BrokerConfigKey(
        "password.encoder.old.secret",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "The former secret, set at the start that changes it.",
    ),
    BrokerConfigKey(
        "password.encoder.keyfactory.algorithm",
        ConfigType.STRING,
        None,
        Importance.LOW,
        "Algorithm that derives the key from the secret.",
    ),
    BrokerConfigKey(
        "password.encoder.cipher.algorithm",
        ConfigType.STRING,
        "AES/CBC/PKCS5Padding",
        Importance.LOW,
        "Cipher with which the passwords are encrypted.",
    ),
    BrokerConfigKey(
        "password.encoder.key.length",
        ConfigType.INT,
        "128",
        Importance.LOW,
        "Length in bits of the key of the passwords.",
        at_least(8),
    ),
    BrokerConfigKey(
        "password.encoder.iterations",
        ConfigType.INT,
        "4096",
        Importance.LOW,
        "Iterations of the algorithm that derives the key.",
        at_least(1024),
    ),
)
