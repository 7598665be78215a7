from __future__ import annotations

import asyncio

import pytest

from odradek.controller.admin.feature_changes import FinalizedFeatureChangeListener
from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.tree.metadata_tree import Create, Delete, Operation, SetData
from odradek.controller.znodes import znodes
from odradek.controller.znodes.features import UNKNOWN_EPOCH, maybe_setup_feature_versioning
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.metadata_version import LATEST_PRODUCTION
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test


@async_test
async def test_the_epoch_of_features_is_the_version_of_their_node(caplog: pytest.LogCaptureFixture) -> None:
    database = await TreeDatabase.open(":memory:", ManualClock())
    try:
        tree = await database.connect()
        client = MetadataClient(tree)
        await maybe_setup_feature_versioning(client, LATEST_PRODUCTION)
        epochs: list[int] = []
        listener = FinalizedFeatureChangeListener(client, epochs.append)
        await listener.start()
        assert epochs == [0]

        async def seen(*operations: Operation[object]) -> list[int]:
            """The epochs that the listener has told after a change."""
            epochs.clear()
            for operation in operations:
                await tree.run(operation)
            for _ in range(30):
                await client.exists("/")
                await asyncio.sleep(0)
            return epochs

        enabled, disabled = znodes.encode_feature(), znodes.encode_feature(status=znodes.FEATURE_DISABLED)
        assert await seen(SetData(znodes.FEATURE, enabled)) == [1]
        assert await seen(SetData(znodes.FEATURE, disabled)) == [UNKNOWN_EPOCH]
        assert await seen(SetData(znodes.FEATURE, enabled)) == [3]
        assert await seen(SetData(znodes.FEATURE, znodes.encode_feature({"a": 1}))) == [], "it stays"
        assert "finalizes features that no broker supports" in caplog.text
        assert await seen(SetData(znodes.FEATURE, b"junk")) == [UNKNOWN_EPOCH]
        assert await seen(Delete(znodes.FEATURE)) == [UNKNOWN_EPOCH]
        assert await seen(Create(znodes.FEATURE, enabled)) == [0]
        await tree.expire_session()
        assert await seen() == [0]
        assert await seen(SetData(znodes.FEATURE, enabled)) == [1]
        listener.stop()
    finally:
        await database.close()
