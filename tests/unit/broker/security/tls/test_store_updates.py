from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.security.tls.store_updates import StoreUpdates
from odradek.broker.security.tls.tls_contexts import TlsContexts
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.ports import InlineIoPool
from tests.support.async_test import async_test
from tests.support.certificates import Authority

AUTHORITY = Authority()


class Updated:
    """A broker's TLS listener with a key store in a file."""

    def __init__(self, directory: Path, more_listeners: tuple[str, ...] = ()) -> None:
        self.path = AUTHORITY.issue("broker").write_pem(directory / "broker.pem")
        self.directory = directory
        self.config = BrokerConfig(
            {
                "listeners": ",".join(
                    f"{name}://:{port}" for port, name in enumerate(("PLAINTEXT", "CLIENTS", *more_listeners), 1)
                ),
                "listener.security.protocol.map": ",".join(
                    ("PLAINTEXT:PLAINTEXT", "CLIENTS:SSL", *(f"{name}:SSL" for name in more_listeners))
                ),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.path),
            }
        )
        self.contexts = TlsContexts(self.config)
        for name in ("CLIENTS", *more_listeners):
            self.contexts.server_context(name)
        self.first = self.contexts.server_context("CLIENTS")
        self.updates = StoreUpdates(self.contexts, InlineIoPool())

    def candidate(self, name: str, **more: str) -> BrokerConfig:
        path = AUTHORITY.issue(name).write_pem(self.directory / f"{name}-new.pem")
        named = {key.replace("_", "."): text for key, text in more.items()}
        return self.config.with_dynamic(
            broker={"listener.name.clients.ssl.keystore.location": str(path), **named}, default={}
        )

    @property
    def is_replaced(self) -> bool:
        return self.contexts.server_context("CLIENTS") is not self.first


@async_test
async def test_what_is_validated_is_not_used_yet(tmp_path: Path) -> None:
    updated = Updated(tmp_path)
    candidate = updated.candidate("broker")
    await updated.updates.validate(candidate)
    await updated.updates.reload_files(candidate)
    assert not updated.is_replaced
    assert await updated.updates.apply(candidate) == set()
    assert updated.is_replaced


@async_test
async def test_stores_that_do_not_fit_are_refused_or_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    updated = Updated(tmp_path)
    candidate = updated.candidate("intruder")
    with pytest.raises(ConfigError, match="Keystore DistinguishedName does not match"):
        await updated.updates.validate(candidate)
    assert await updated.updates.apply(candidate) == {"clients"}
    assert not updated.is_replaced
    assert "The stores of listener CLIENTS stay as they are" in caplog.text


@async_test
async def test_a_listener_that_cannot_use_its_stores_does_not_keep_others_from_theirs(tmp_path: Path) -> None:
    updated = Updated(tmp_path, more_listeners=("OTHERS",))
    candidate = updated.candidate("broker", listener_name_others_ssl_keystore_location=str(tmp_path / "nowhere.pem"))
    assert await updated.updates.apply(candidate) == {"others"}
    assert updated.is_replaced


@async_test
async def test_files_that_have_changed_are_read_anew(tmp_path: Path) -> None:
    updated = Updated(tmp_path)
    await updated.updates.reload_files(updated.config)
    assert not updated.is_replaced
    os.utime(updated.path, (1, 1))
    await updated.updates.apply(updated.config)
    assert not updated.is_replaced, "an AlterConfigs reloads them, not the notification of another change"
    await updated.updates.reload_files(updated.config)
    assert updated.is_replaced


@async_test
async def test_files_that_have_changed_are_read_anew_beside_changes_of_other_settings(tmp_path: Path) -> None:
    updated = Updated(tmp_path)
    os.utime(updated.path, (1, 1))
    candidate = updated.config.with_dynamic(broker={"ssl.client.auth": "required"}, default={})
    await updated.updates.reload_files(candidate)
    assert updated.is_replaced
    assert updated.contexts.server_context("CLIENTS").verify_mode is ssl.CERT_NONE


@async_test
async def test_an_error_of_any_kind_reaches_the_one_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    updated = Updated(tmp_path)

    def failing(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(updated.contexts, "replacements", failing)
    with pytest.raises(KeyError, match="a bug"):
        await updated.updates.apply(updated.candidate("broker"))
