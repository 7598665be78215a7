"""The SCRAM credentials of users."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from odradek.controller.admin.scram_credentials import describe_scram_credentials
from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import ErrorCode
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test

CREDENTIAL = "salt=c2FsdA==,stored_key=aXRlcmF0aW9ucw==,server_key=eA==,iterations={}"
CONFIGS = {
    "b%40c": {"SCRAM-SHA-512": CREDENTIAL.format(8192), "SCRAM-SHA-256": CREDENTIAL.format(4096)},
    "a": {"SCRAM-SHA-256": CREDENTIAL.format(5000), "producer_byte_rate": "1"},
    "broken": {"SCRAM-SHA-256": "iterations"},
    "quota-only": {"producer_byte_rate": "1"},
    "<default>": {"producer_byte_rate": "1"},
}


@asynccontextmanager
async def opened() -> AsyncIterator[MetadataClient]:
    database = await TreeDatabase.open(":memory:", ManualClock())
    try:
        client = MetadataClient(await database.connect())
        for user, config in CONFIGS.items():
            path = znodes.entity_config_path(f"users/{user}")
            await client.create_recursive(path, znodes.encode_entity_config(config))
        yield client
    finally:
        await database.close()


@async_test
async def test_all_that_have_any_are_told_by_name() -> None:
    async with opened() as client:
        for nobody in (None, []):
            found = await describe_scram_credentials(client, nobody)
            assert [(one.user, one.iterations) for one in found] == [
                ("a", {1: 5000}),
                ("b@c", {1: 4096, 2: 8192}),
                ("broken", {}),
            ]
            assert found[2].error is not None
            assert found[2].error.code is ErrorCode.UNKNOWN_SERVER_ERROR


@async_test
async def test_users_that_are_asked_for_are_told_once_in_the_order_they_were_named() -> None:
    async with opened() as client:
        found = await describe_scram_credentials(client, ["b@c", "nobody", "a", "", "a", "quota-only"])
        assert [(one.user, one.iterations, one.error and one.error.code) for one in found] == [
            ("b@c", {1: 4096, 2: 8192}, None),
            ("nobody", {}, ErrorCode.RESOURCE_NOT_FOUND),
            ("a", {}, ErrorCode.DUPLICATE_RESOURCE),
            ("", {}, ErrorCode.RESOURCE_NOT_FOUND),
            ("quota-only", {}, ErrorCode.RESOURCE_NOT_FOUND),
        ]
