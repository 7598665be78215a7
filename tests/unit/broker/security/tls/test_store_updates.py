from __future__ import annotations

import os
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

    def __init__(self, directory: Path) -> None:
        self.path = AUTHORITY.issue("broker").write_pem(directory / "broker.pem")
        self.directory = directory
        self.config = BrokerConfig(
            {
                "listeners": "PLAINTEXT://:1,CLIENTS://:2",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.path),
            }
        )
        self.contexts = TlsContexts(self.config)
        self.first = self.contexts.server_context("CLIENTS")
        self.updates = StoreUpdates(self.contexts, InlineIoPool())

    def candidate(self, name: str) -> BrokerConfig:
        path = AUTHORITY.issue(name).write_pem(self.directory / f"{name}-new.pem")
        return self.config.with_dynamic(broker={"listener.name.clients.ssl.keystore.location": str(path)}, default={})

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
    await updated.updates.apply(candidate)
    assert updated.is_replaced


@async_test
async def test_stores_that_do_not_fit_are_refused_or_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    updated = Updated(tmp_path)
    candidate = updated.candidate("intruder")
    with pytest.raises(ConfigError, match="Keystore DistinguishedName does not match"):
        await updated.updates.validate(candidate)
    await updated.updates.apply(candidate)
    assert not updated.is_replaced
    assert "The stores of the listeners stay as they are" in caplog.text


@async_test
async def test_files_that_have_changed_are_read_anew(tmp_path: Path) -> None:
    updated = Updated(tmp_path)
    await updated.updates.reload_files(updated.config)
    assert not updated.is_replaced
    os.utime(updated.path, (1, 1))
    await updated.updates.reload_files(updated.config)
    assert updated.is_replaced
