from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config.keys.sasl import LOGIN
from odradek.broker.security.sasl.mechanisms import client_context, mechanism_module
from odradek.broker.tools.command.client_config import ClientSasl, client_config
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.sasl_client import authenticate_client
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=canary;"


async def no_server(request: bytes) -> bytes:
    raise ConnectionResetError("no server")


@async_test
async def test_a_configuration_that_is_not_valid_fails_the_command() -> None:
    for sasl, message in (
        (ClientSasl("DIGEST-MD5", JAAS), "DIGEST-MD5 is not supported"),
        (ClientSasl("PLAIN", "nothing"), "Login module control flag not specified"),
        (ClientSasl("SCRAM-SHA-256", JAAS), "which is not supported"),
    ):
        with pytest.raises(CommandFailed, match=message) as failure:
            await authenticate_client(sasl, "localhost", "me", no_server, ManualClock())
        assert "canary" not in str(failure.value)


@async_test
async def test_a_server_that_goes_is_an_error_of_the_connection() -> None:
    with pytest.raises(ConnectionResetError):
        await authenticate_client(ClientSasl("PLAIN", JAAS), "localhost", "me", no_server, ManualClock())


def test_the_configuration_of_a_client() -> None:
    settings = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}
    config = client_config(None, settings)
    assert config.sasl == ClientSasl("PLAIN", JAAS)
    assert "canary" not in repr(config)
    assert client_config(None, {"sasl.jaas.config": JAAS}).sasl is None
    with pytest.raises(CommandFailed, match=r"sasl\.jaas\.config is not set"):
        client_config(None, {"security.protocol": "SASL_PLAINTEXT"})


@async_test
async def test_a_token_of_a_file_is_sent(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("the-token")
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": LOGIN,
        "sasl.oauthbearer.token.endpoint.url": f"file:{tmp_path}/token",
    }
    config = client_config(None, settings)
    assert config.sasl is not None
    client = mechanism_module("OAUTHBEARER").make_client(
        client_context("OAUTHBEARER", config.sasl.jaas_config, config.sasl.settings, ManualClock(), bytes)
    )
    assert client.evaluate_challenge(b"") == b"n,,\x01auth=Bearer the-token\x01\x01"
    unknown = ClientSasl("OAUTHBEARER", config.sasl.jaas_config, {"sasl.login.callback.handler.class": "com.example.X"})
    with pytest.raises(CommandFailed, match="must be one of"):
        await authenticate_client(unknown, "localhost", "me", no_server, ManualClock())
