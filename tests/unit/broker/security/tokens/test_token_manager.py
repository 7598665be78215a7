"""Tokens of two brokers on one tree."""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections.abc import Awaitable, Callable

import pytest

from odradek.broker.security.tokens.token_manager import DelegationTokenManager, TokenSettings
from odradek.controller.model.delegation_token import Principal
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.controller.tree.metadata_tree import Create, CreateMode, Delete, SetData
from odradek.controller.znodes.delegation_token_nodes import TOKEN_CHANGE_PREFIX, TOKEN_CHANGES, token_path
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.disk.ports import InlineIoPool
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.clusters.forbidden_nodes import forbidden_nodes

Change = Callable[[DelegationTokenManager, Principal, bytes, int], Awaitable[int]]

ALICE = Principal("User", "alice")
SALTS = itertools.count()


def manager(cluster: ControllerCluster, secret: bytes = b"key", max_lifetime_ms: int = 1000) -> DelegationTokenManager:
    ids = itertools.count()
    settings = TokenSettings(secret, max_lifetime_ms=max_lifetime_ms, expiry_time_ms=100)
    return DelegationTokenManager(
        cluster.client,
        cluster.clock,
        InlineIoPool(),
        settings,
        lambda: f"token-{next(ids)}",
        lambda size: next(SALTS).to_bytes(size, "big"),
    )


async def settle(cluster: ControllerCluster) -> None:
    for _ in range(10):
        await cluster.settle()


@async_test
async def test_the_longest_lifetime_ends_within_64_bits() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        one, other = manager(cluster, max_lifetime_ms=2**63 - 1), manager(cluster)
        await one.startup()
        await other.startup()
        token = await one.create_token(ALICE, ALICE, (), -1)
        await settle(cluster)
        assert token.info.max_ms == 2**63 - 1
        assert other.cache.token_info("token-0") == ("User:alice", token.info.expiry_ms)


@async_test
async def test_a_change_reaches_the_other_broker_with_the_same_password() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        one, other = manager(cluster), manager(cluster)
        await one.startup()
        await other.startup()
        token = await one.create_token(ALICE, ALICE, (), -1)
        await settle(cluster)
        assert other.cache.token_info("token-0") == ("User:alice", token.info.expiry_ms)
        for name, mechanism in SCRAM_MECHANISMS.items():
            credential = other.cache.scram_credential(name, "token-0")
            assert credential is not None
            salted = mechanism.salted_password(b64encode(token.hmac), credential.salt, credential.iterations)
            assert mechanism.credential(credential.salt, salted, credential.iterations) == credential
        before = other.cache.scram_credential("SCRAM-SHA-256", "token-0")
        cluster.clock.advance(10)
        await one.renew_token(ALICE, token.hmac, -1)
        await settle(cluster)
        assert other.cache.token_info("token-0") == ("User:alice", token.info.expiry_ms + 10)
        assert other.cache.scram_credential("SCRAM-SHA-256", "token-0") is before  # nothing was hashed again
        await other.expire_token(ALICE, token.hmac, -1)
        await settle(cluster)
        assert one.cache.token_info("token-0") is None
        assert one.cache.token_for_hmac(token.hmac) is None
        assert one.cache.scram_credential("SCRAM-SHA-256", "token-0") is None
        await one.shutdown()
        await other.shutdown()


@async_test
async def test_junk_in_the_tree_does_not_hide_tokens(caplog: pytest.LogCaptureFixture) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        one = manager(cluster)
        await one.startup()
        await one.create_token(ALICE, ALICE, (), -1)
        await cluster.client.tree.run(Create(token_path("junk"), b"junk"))
        other = manager(cluster)
        await other.startup()
        assert [token.info.token_id for token in other.cache.tokens()] == ["token-0"]
        assert "Error while getting Token for tokenId: junk" in caplog.text
        for data in (None, b"", b"a/b", b"..", b"\xff", b"junk"):
            path = f"{TOKEN_CHANGES}/{TOKEN_CHANGE_PREFIX}"
            await cluster.client.tree.run(Create(path, data, CreateMode.PERSISTENT_SEQUENTIAL))
        await one.create_token(ALICE, ALICE, (), -1)
        await settle(cluster)
        assert other.cache.token_info("token-1") is not None
        await one.shutdown()
        await other.shutdown()


@async_test
async def test_a_token_that_may_not_be_read_does_not_hide_others(caplog: pytest.LogCaptureFixture) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        one = manager(cluster)
        await one.startup()
        for _ in range(2):
            await one.create_token(ALICE, ALICE, (), -1)
        forbidden = forbidden_nodes(cluster.client.tree)
        forbidden.add(token_path("token-0"))
        other = manager(cluster)
        await other.startup()
        assert [token.info.token_id for token in other.cache.tokens()] == ["token-1"]
        assert "Error while getting Token for tokenId: token-0: ZooKeeper: NoAuthError" in caplog.text
        forbidden.add(token_path("token-2"))
        for _ in range(2):
            await one.create_token(ALICE, ALICE, (), -1)
        await settle(cluster)
        assert [token.info.token_id for token in other.cache.tokens()] == ["token-1", "token-3"]
        await one.shutdown()
        await other.shutdown()


@pytest.mark.parametrize("change", [DelegationTokenManager.renew_token, DelegationTokenManager.expire_token])
@async_test
async def test_a_token_that_another_broker_has_removed_does_not_come_back(change: Change) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        one, other = manager(cluster), manager(cluster)
        await one.startup()
        await other.startup()
        token = await one.create_token(ALICE, ALICE, (), -1)
        await settle(cluster)
        await one.shutdown()  # does not hear of the removal
        await other.expire_token(ALICE, token.hmac, -1)
        with pytest.raises(KafkaError) as refused:
            await change(one, ALICE, token.hmac, 10)
        assert refused.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert one.cache.tokens() == []
        await settle(cluster)
        assert other.cache.tokens() == []
        assert await cluster.client.children("/delegation_token/tokens") == ()
        await other.shutdown()


@async_test
async def test_a_token_with_a_malformed_node_can_be_removed() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        one = manager(cluster)
        await one.startup()
        token = await one.create_token(ALICE, ALICE, (), -1)
        await cluster.client.tree.run(SetData(token_path("token-0"), b"{}"))
        await one.expire_token(ALICE, token.hmac, -1)
        assert await cluster.client.children("/delegation_token/tokens") == ()
        await one.shutdown()


@async_test
async def test_after_a_lost_session_a_token_is_gone_whose_removal_was_not_notified() -> None:
    """The notification may have expired before the next session began."""
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        one = manager(cluster)
        await one.startup()
        await one.create_token(ALICE, ALICE, (), -1)
        token = await one.create_token(ALICE, ALICE, (), -1)
        await settle(cluster)
        await cluster.client.tree.run(Delete(token_path(token.info.token_id)))
        await settle(cluster)
        assert one.cache.token_for_hmac(token.hmac) is not None
        await cluster.expire(0)
        await settle(cluster)
        assert one.cache.token_for_hmac(token.hmac) is None
        assert [each.info.token_id for each in one.cache.tokens()] == ["token-0"]
        await one.shutdown()
