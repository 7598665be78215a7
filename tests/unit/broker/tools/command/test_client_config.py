from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from odradek.broker.tools.command.client_config import client_config, read_properties
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.running import config_of
from odradek.broker.tools.data.client.properties import gather


def test_defaults_are_those_of_kafka() -> None:
    config = client_config(None, {})
    assert config.bootstrap == "127.0.0.1:9092"
    assert (config.client_id, config.request_timeout_ms, config.api_timeout_ms) == ("odradek-admin", 30_000, 60_000)
    assert config.retry_backoff_ms == 100
    assert (config.connection_setup_timeout_ms, config.connection_setup_timeout_max_ms) == (10_000, 30_000)


def test_a_properties_file_sets_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=a:1\nclient.id=me\nrequest.timeout.ms=5\ndefault.api.timeout.ms=6\nretry.backoff.ms=0\n"
        "security.protocol=plaintext\nacks=all\nno.such.key=1\n"
    )
    settings = read_properties(str(file))
    config = client_config(None, settings, also={"acks"})
    assert (config.bootstrap, config.client_id) == ("a:1", "me")
    assert (config.request_timeout_ms, config.api_timeout_ms, config.retry_backoff_ms) == (5, 6, 0)
    warning = "odradek: warning: the configuration 'no.such.key' is not used by this command\n"
    assert capsys.readouterr().err == warning
    assert client_config("b:2", settings, also={"acks"}).bootstrap == "b:2"


def test_variables_of_config_providers_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEST_BOOTSTRAP", "a:1")
    file = tmp_path / "client.properties"
    kafkas = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    file.write_text(
        f"config.providers=env\nconfig.providers.env.class={kafkas}\nbootstrap.servers=${{env:TEST_BOOTSTRAP}}\n"
    )
    options = argparse.Namespace(command_config=str(file), bootstrap_server=None)
    assert config_of(options).bootstrap == "a:1"
    assert gather(str(file), ["client.id=${env:TEST_BOOTSTRAP}"]) == {"bootstrap.servers": "a:1", "client.id": "a:1"}
    assert capsys.readouterr().err == "", "the keys of the providers are used"
    with pytest.raises(CommandFailed, match="Could not load config provider class"):
        gather(str(file), ["config.providers.env.class=org.apache.Vault"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"security.protocol": "TLS"}, "Invalid value TLS for configuration security.protocol"),
        ({"request.timeout.ms": "soon"}, "Invalid value soon for configuration request.timeout.ms: Not a number"),
        ({"request.timeout.ms": "2147483648"}, "configuration request.timeout.ms: Not a number of type INT"),
        ({"request.timeout.ms": "1_000"}, "configuration request.timeout.ms: Not a number of type INT"),
        ({"retry.backoff.ms": "9223372036854775808"}, "configuration retry.backoff.ms: Not a number of type LONG"),
        ({"retry.backoff.ms": "-1"}, "Invalid value -1 for configuration retry.backoff.ms: Value must be at least 0"),
    ],
)
def test_values_that_are_not_valid_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        client_config(None, settings)


def test_numbers_have_the_widths_of_java() -> None:
    settings = {
        "default.api.timeout.ms": " 2147483647 ",
        "retry.backoff.ms": "9223372036854775807",
        "socket.connection.setup.timeout.ms": "2147483648",
        "socket.connection.setup.timeout.max.ms": "2147483648",
    }
    config = client_config(None, settings)
    assert (config.api_timeout_ms, config.retry_backoff_ms) == (2**31 - 1, 2**63 - 1)
    assert (config.connection_setup_timeout_ms, config.connection_setup_timeout_max_ms) == (2**31, 2**31)


@pytest.mark.parametrize("content", [None, b"key=\\u12"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandFailed, match="cannot read the client configuration"):
        read_properties(str(file))


def test_tls() -> None:
    assert client_config(None, {}).tls_context is None
    settings = {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": ""}
    context = client_config(None, settings).tls_context
    assert context is not None
    assert not context.check_hostname
    with pytest.raises(CommandFailed, match="SSL key store is specified, but key store password is not"):
        client_config(None, {"security.protocol": "SSL", "ssl.keystore.location": "x"})
