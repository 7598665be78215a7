"""Two authorizers, each with a session of its own, on one metadata tree."""

from __future__ import annotations

from random import Random

import pytest

from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.authorizer.acl_store import RETRY_BACKOFF_MS
from odradek.broker.security.authorizer.ports import Action
from odradek.controller.model.acls import (
    AclOperation,
    ResourcePattern,
)
from odradek.controller.tree.metadata_tree import ConnectionLoss, Create, CreateMode, Delete, SetData
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.errors import ErrorCode
from odradek.storage.config.config_def import ConfigError
from tests.support.acls.acl_model import compare_with_the_model
from tests.support.acls.authorizers import (
    ALL,
    DENY,
    NODE,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    binding,
    brokers,
    client_of,
    create,
    filter_of,
    may,
    stored,
)
from tests.support.async_test import async_test
from tests.support.clusters.forbidden_nodes import forbidden_nodes

CASES = 3_000


@async_test
async def test_decisions_are_those_of_a_naive_model() -> None:
    assert await compare_with_the_model(Random(1), CASES) == {False, True}


@async_test
async def test_acls_of_one_broker_hold_on_all_and_after_a_restart() -> None:
    async with brokers() as cluster:
        one, other = await cluster.start(), await cluster.start()
        assert not may(one)
        new = binding(), binding("u", pattern_type=PREFIXED), binding("u", WRITE, DENY, PREFIXED)
        assert await create(one, *new) == [None] * 3
        assert may(one)
        await cluster.settle()
        restarted = await cluster.start()
        for authorizer in (one, other, restarted):
            assert set(stored(authorizer)) == set(new)
            assert authorizer.acl_count == 3
            assert (may(authorizer), may(authorizer, "u1"), may(authorizer, "u1", WRITE)) == (True, True, False)


@async_test
async def test_deleted_acls_are_gone_on_all_brokers_with_their_nodes() -> None:
    async with brokers() as cluster:
        one, other = await cluster.start(), await cluster.start()
        both = binding(), binding(operation=WRITE)
        await create(one, *both, binding("x", pattern_type=PREFIXED))
        await cluster.settle()
        only_read = filter_of("t")._replace(entry=ALL.entry._replace(operation=READ))
        first, second, third = await other.delete_acls(client_of(), [only_read, filter_of(None), filter_of("none")])
        assert first == (None, ((both[0], None),))
        assert second == (None, ((both[1], None),))
        assert third == (None, ())
        await cluster.settle()
        assert [found.pattern.name for found in stored(one)] == ["x"]
        assert not await cluster.client.exists(NODE)
        assert await cluster.client.exists("/kafka-acl-extended/prefixed/Topic/x")


@async_test
async def test_bindings_that_cannot_be_stored() -> None:
    async with brokers() as cluster:
        one = await cluster.start()
        unknown = binding()._replace(entry=binding().entry._replace(operation=AclOperation.UNKNOWN))
        answers = await one.create_acls(
            client_of(), [unknown, binding("a/b"), binding(".."), binding(principal="alice"), binding("good")]
        )
        refusal, error = ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR
        codes = [None if answer.error is None else answer.error.code for answer in answers]
        assert codes == [refusal, refusal, error, error, None]
        assert answers[0].error is not None
        assert answers[0].error.message == "Failed to create ACL"
        assert [found.pattern.name for found in stored(one)] == ["good"]


@async_test
async def test_prefixed_patterns_need_brokers_that_know_them() -> None:
    async with brokers() as cluster:
        tree = await cluster.cluster.database.connect()
        timer = cluster.cluster.timer
        old = AclAuthorizer(MetadataClient(tree), cluster.cluster.clock, timer, lambda n: 0, has_prefixed_acls=False)
        cluster.trees.append(tree)
        cluster.authorizers.append(old)
        await old.start()
        assert await create(old, binding(pattern_type=PREFIXED), binding()) == [ErrorCode.INVALID_REQUEST, None]


@async_test
async def test_all_is_read_again_after_a_lost_session() -> None:
    """Notifications that have expired meanwhile would be missed otherwise."""
    async with brokers() as cluster:
        one, other = await cluster.start(), await cluster.start()
        await create(one, binding(), binding("gone"))
        await cluster.settle()
        for listener in other._listeners:
            listener.stop()
        await one.delete_acls(client_of(), [filter_of("gone")])
        await create(one, binding(permission=DENY))
        await cluster.settle()
        assert may(other)
        await cluster.trees[1].expire_session()
        await cluster.settle()
        assert not may(other)
        assert other.acl_count == 2


@async_test
async def test_what_a_tool_writes_holds_and_junk_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with brokers() as cluster:
        one = await cluster.start()
        tree = cluster.client.tree
        path = "/kafka-acl-changes/acl_changes_"
        await tree.run(Create(path, b"junk", CreateMode.PERSISTENT_SEQUENTIAL))
        await tree.run(Create(NODE, b'{"version":7}'))
        await tree.run(Create(path, b"Topic:t", CreateMode.PERSISTENT_SEQUENTIAL))
        await cluster.settle()
        assert "error processing change notification b'junk'" in caplog.text
        assert "ACLs that cannot be read stay as they were" in caplog.text
        entry = b'{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}'
        await tree.run(SetData(NODE, b'{"version":1,"acls":[' + entry + b"]}"))
        await tree.run(Create(path, b"Topic:t", CreateMode.PERSISTENT_SEQUENTIAL))
        await cluster.settle()
        assert may(one)
        await tree.run(Delete(NODE))
        await tree.run(Create(path, b"Topic:t", CreateMode.PERSISTENT_SEQUENTIAL))
        await cluster.settle()
        assert one.acl_count == 0


@async_test
async def test_a_malformed_node_stops_the_start_because_it_may_deny() -> None:
    async with brokers() as cluster:
        await cluster.start()
        await cluster.client.tree.run(Create(NODE, b'{"version":7}'))
        with pytest.raises(BadZnode):
            await cluster.start()


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", set()),
        (";", set()),
        ("User:a; User:CN=b,OU=c:d ;Group:x;;", {"User:a", "User:CN=b,OU=c:d", "Group:x"}),
        ("User:", {"User:"}),
    ],
)
@async_test
async def test_super_users(text: str, users: set[str]) -> None:
    async with brokers() as cluster:
        one = await cluster.start(super_users=text)
        await create(one, binding("*", AclOperation.ALL, DENY, principal="User:*"))
        for user in ("User:a", "User:CN=b,OU=c:d", "Group:x", "User:", "User:other"):
            assert may(one, principal=user) == (user in users)
            assert one.authorize_by_resource_type(client_of(user), WRITE, TOPIC) == (user in users)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"super_users": "alice"},
            "super.users: expected a string in format principalType:principalName but got alice",
        ),
        ({"super_users": "User:a;;User:b"}, "principalType:principalName but got "),
        ({"super_users": " "}, "principalType:principalName but got "),
        ({"allow_everyone_if_no_acl_found": "yes"}, 'allow.everyone.if.no.acl.found: For input string: "yes"'),
    ],
)
@async_test
async def test_settings_that_are_not_valid(settings: dict[str, str], message: str) -> None:
    async with brokers() as cluster:
        with pytest.raises(ConfigError, match=message):
            await cluster.start(**settings)


@async_test
async def test_resources_without_acls_are_open_to_everyone_if_that_is_set() -> None:
    async with brokers() as cluster:
        one = await cluster.start(allow_everyone_if_no_acl_found=" True ")
        await create(one, binding())
        assert may(one, "other", principal="User:b")
        assert not may(one, principal="User:b")
        assert one.authorize_by_resource_type(client_of("User:b"), WRITE, TOPIC)


@async_test
async def test_a_host_of_ipv6_is_written_as_by_java() -> None:
    async with brokers() as cluster:
        one = await cluster.start()
        entry = binding().entry
        await create(
            one,
            binding()._replace(entry=entry._replace(host="0:0:0:0:0:0:0:1")),
            binding("u")._replace(entry=entry._replace(host="::1")),
        )
        client = client_of(host="::1")
        assert one.authorize(client, [Action(READ, TOPIC, "t"), Action(READ, TOPIC, "u")]) == [True, False]
        assert one.authorize_by_resource_type(client, READ, TOPIC)


@async_test
async def test_what_could_not_be_read_is_read_again(caplog: pytest.LogCaptureFixture) -> None:
    async with brokers() as cluster:
        one, other = await cluster.start(), await cluster.start()
        read, failures = other._store._read, [ConnectionLoss(NODE)]

        async def fail_once(patterns: list[ResourcePattern]) -> object:
            if failures:
                raise failures.pop()
            return await read(patterns)

        other._store._read = fail_once  # type: ignore[assignment, method-assign]
        await create(one, binding())
        await cluster.settle()
        assert "Error while ACLs were read, which is tried again: ConnectionLoss" in caplog.text
        assert not may(other)
        cluster.cluster.clock.advance(RETRY_BACKOFF_MS + 50)
        cluster.cluster.timer.advance()
        await cluster.settle()
        assert may(other)


@async_test
async def test_a_change_of_a_name_that_no_node_can_have_is_not_read_again(caplog: pytest.LogCaptureFixture) -> None:
    async with brokers() as cluster:
        one = await cluster.start()
        path = "/kafka-acl-changes/acl_changes_"
        await cluster.client.tree.run(Create(path, b"Topic:..", CreateMode.PERSISTENT_SEQUENTIAL))
        await cluster.settle()
        assert 'ACLs that cannot be read stay as they were: Invalid path string "/kafka-acl/Topic/.."' in caplog.text
        assert not one._changed


@async_test
async def test_acls_that_may_not_be_read_stay_and_are_not_read_again(caplog: pytest.LogCaptureFixture) -> None:
    async with brokers() as cluster:
        one, other = await cluster.start(), await cluster.start()
        await create(one, binding())
        await cluster.settle()
        forbidden_nodes(other._client.tree).add(NODE)
        await create(one, binding(principal="User:b"), binding("u"))
        await cluster.settle()
        assert (may(other), may(other, principal="User:b"), may(other, "u")) == (True, False, True)
        assert "ACLs that cannot be read stay as they were: ZooKeeper: NoAuthError" in caplog.text
        assert not other._changed


@async_test
async def test_a_malformed_node_does_not_hide_that_another_was_not_read() -> None:
    """Else a right that was taken away would last until the next restart."""
    async with brokers() as cluster:
        one = await cluster.start()
        malformed, unread = binding("bad").pattern, binding().pattern

        async def read(patterns: list[ResourcePattern]) -> object:
            return {malformed: BadZnode("bad"), unread: ConnectionLoss(NODE)}

        one._store._read = read  # type: ignore[assignment, method-assign]
        with pytest.raises(ConnectionLoss):
            await one._store.refresh([malformed, unread])
