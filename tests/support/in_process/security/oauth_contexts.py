"""What OAUTHBEARER is made from, for tests."""

from __future__ import annotations

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.broker.security.sasl.oauth.oauthbearer import LOGIN_MODULE
from odradek.broker.security.sasl.ports import JaasEntry, SaslContext
from odradek.storage.config.config_def import ConfigValue
from odradek.storage.disk.ports import InlineIoPool, IoPool
from odradek.timer.clock import ManualClock
from tests.support.in_process.security.sasl_contexts import Credentials

NOW_S = 1_700_000_000


def oauth_context(
    settings: dict[str, str], options: dict[str, str] | None = None, *, io_pool: IoPool | None = None
) -> SaslContext:
    """`settings` have no prefix; the others have their defaults."""

    def value(name: str) -> ConfigValue:
        key = BROKER_CONFIG_KEYS[name]
        return key.parse(settings[name]) if name in settings else key.default_value()

    return SaslContext(
        "OAUTHBEARER",
        JaasEntry(LOGIN_MODULE, options or {}),
        value,
        ManualClock(NOW_S * 1000),
        io_pool or InlineIoPool(),
        lambda count: bytes(count),
        Credentials(),
        None,
    )
