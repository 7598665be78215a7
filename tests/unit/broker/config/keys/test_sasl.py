from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.keys.sasl import LOGINS, UNSECURED_LOGIN, UNSECURED_VALIDATOR, VALIDATORS
from odradek.storage.config.config_def import ConfigError

PREFIX = "listener.name.plaintext.oauthbearer."


@pytest.mark.parametrize(
    ("key", "classes"),
    [
        ("sasl.server.callback.handler.class", (*VALIDATORS, UNSECURED_VALIDATOR)),
        ("sasl.login.callback.handler.class", (*LOGINS, UNSECURED_LOGIN)),
    ],
)
def test_known_classes_are_taken_and_others_refused(key: str, classes: tuple[str, ...]) -> None:
    for name in classes:
        config = BrokerConfig({f"{PREFIX}{key}": name})
        assert config.listener_value("PLAINTEXT", key, "OAUTHBEARER") == name
    with pytest.raises(ConfigError, match="must be one of"):
        BrokerConfig({f"{PREFIX}{key}": "com.example.Handler"})
