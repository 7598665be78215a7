from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.tree.metadata_tree import (
    Delete,
    Operation,
    SessionExpired,
    SetData,
    StorageFull,
    TreeError,
)
from odradek.controller.znodes import znodes
from odradek.controller.znodes.features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    maybe_setup_feature_versioning,
    update_features,
    validate_feature_update,
)
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test

UNSUPPORTED = "Could not apply finalized feature update because the provided feature is not supported."


@pytest.mark.parametrize(
    ("level", "upgrade_type", "existing", "reason"),
    [
        (1, UPGRADE, None, UNSUPPORTED),
        (3, UPGRADE, 2, UNSUPPORTED),
        (1, SAFE_DOWNGRADE, 2, UNSUPPORTED),
        (0, SAFE_DOWNGRADE, 2, None),
        (-1, UNSAFE_DOWNGRADE, 2, None),
        (0, SAFE_DOWNGRADE, None, "Can not delete non-existing finalized feature."),
        (
            0,
            UPGRADE,
            2,
            "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the request.",
        ),
        (2, UPGRADE, 2, "Can not upgrade a finalized feature from existing versionLevel:2 to the same value."),
        (2, SAFE_DOWNGRADE, 2, "Can not downgrade a finalized feature from existing versionLevel:2 to the same value."),
        (
            1,
            UPGRADE,
            2,
            "Can not downgrade finalized feature from existing versionLevel:2 to provided versionLevel:1 without "
            "setting the downgradeType to SAFE in the request.",
        ),
        (
            3,
            SAFE_DOWNGRADE,
            2,
            "When the downgradeType is set to SAFE in the request, the provided versionLevel:3 can not be greater than "
            "existing versionLevel:2.",
        ),
        (1, 4, None, "Received unknown upgrade type."),
    ],
)
def test_every_check(level: int, upgrade_type: int, existing: int | None, reason: str | None) -> None:
    assert validate_feature_update(FeatureUpdate("f", level, upgrade_type), existing) == reason


def test_a_feature_has_a_name() -> None:
    assert validate_feature_update(FeatureUpdate("", 1), None) == "Feature name can not be empty."


@asynccontextmanager
async def opened(*features: str) -> AsyncIterator[MetadataClient]:
    database = await TreeDatabase.open(":memory:", ManualClock())
    try:
        client = MetadataClient(await database.connect())
        await maybe_setup_feature_versioning(client, LATEST_PRODUCTION)
        await client.tree.run(SetData(znodes.FEATURE, znodes.encode_feature(dict.fromkeys(features, 2))))
        yield client
    finally:
        await database.close()


async def finalised(client: MetadataClient) -> tuple[int, dict[str, int]]:
    node = await client.get(znodes.FEATURE)
    assert node is not None
    return znodes.decode_feature(node.data)


@async_test
async def test_what_others_finalised_can_be_taken_away() -> None:
    async with opened("a", "b", "c") as client:
        updates = [FeatureUpdate("a", 0, SAFE_DOWNGRADE), FeatureUpdate("b", 3), FeatureUpdate("a", 3)]
        results = await update_features(client, updates, LATEST_PRODUCTION)
        assert results["a"] is None
        assert results["b"] is not None
        assert (results["b"].code, results["b"].message) == (ErrorCode.INVALID_REQUEST, UNSUPPORTED)
        assert await finalised(client) == (znodes.FEATURE_ENABLED, {"b": 2, "c": 2})
        assert await update_features(client, [], LATEST_PRODUCTION) == {}
        await client.tree.run(Delete(znodes.FEATURE))
        assert (await update_features(client, [FeatureUpdate("c", 0, SAFE_DOWNGRADE)], LATEST_PRODUCTION))[
            "c"
        ] is not None


@async_test
async def test_a_protocol_from_before_features_disables_them_and_a_later_one_begins_anew() -> None:
    async with opened("a") as client:
        await maybe_setup_feature_versioning(client, MetadataVersion.IBP_2_6_IV0)
        node = await client.get(znodes.FEATURE)
        assert node is not None
        assert node.data == b'{"features":{},"version":1,"status":0}'
        with pytest.raises(KafkaError, match=r"Feature versioning system is disabled\.") as refused:
            await update_features(client, [FeatureUpdate("a", 1)], MetadataVersion.IBP_2_6_IV0)
        assert refused.value.code == ErrorCode.INVALID_REQUEST
        await maybe_setup_feature_versioning(client, LATEST_PRODUCTION)
        assert await finalised(client) == (znodes.FEATURE_ENABLED, {})


@async_test
async def test_features_stay_finalised_in_the_layout_of_the_version() -> None:
    async with opened("a") as client:
        await maybe_setup_feature_versioning(client, MetadataVersion.IBP_3_2_IV0)
        node = await client.get(znodes.FEATURE)
        assert node is not None
        assert node.data == b'{"features":{"a":{"max_version_level":2,"min_version_level":2}},"version":1,"status":1}'
        version = node.stat.version
        await maybe_setup_feature_versioning(client, MetadataVersion.IBP_3_2_IV0)
        unchanged = await client.get(znodes.FEATURE)
        assert unchanged is not None
        assert unchanged.stat.version == version
        await maybe_setup_feature_versioning(client, MetadataVersion.IBP_3_3_IV0)
        assert await finalised(client) == (znodes.FEATURE_ENABLED, {"a": 2})


@pytest.mark.parametrize("failure", [StorageFull(znodes.FEATURE), SessionExpired(znodes.FEATURE)])
@async_test
async def test_what_cannot_be_written_failed(failure: TreeError) -> None:
    async with opened("a") as client:
        tree = client.tree

        class Failing:
            async def run(self, operation: Operation[object]) -> object:
                if isinstance(operation, SetData):
                    raise failure
                return await tree.run(operation)

        client.tree = Failing()
        updates = [FeatureUpdate("a", 0, SAFE_DOWNGRADE), FeatureUpdate("b", 1)]
        if isinstance(failure, SessionExpired):
            with pytest.raises(SessionExpired):
                await update_features(client, updates, LATEST_PRODUCTION)
            return
        codes = {
            name: error and error.code
            for name, error in (await update_features(client, updates, LATEST_PRODUCTION)).items()
        }
        assert codes == {"a": ErrorCode.FEATURE_UPDATE_FAILED, "b": ErrorCode.INVALID_REQUEST}
