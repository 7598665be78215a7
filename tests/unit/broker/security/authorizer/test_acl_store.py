"""Changes of ACLs on one metadata tree."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from odradek.broker.security.authorizer import acl_authorizer
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.authorizer.acl_store import MAX_UPDATE_RETRIES, NODES_AT_ONCE, RETRY_BACKOFF_MS
from odradek.broker.security.authorizer.filter_index import first_match
from odradek.broker.security.authorizer.ports import AclDeleteResult
from odradek.controller.admin.node_changes import CHANGE_EXPIRATION_MS
from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.controller.model.acls import (
    AccessControlEntry,
    AclOperation,
    PatternType,
)
from odradek.controller.tree.embedded_tree import EmbeddedTree
from odradek.controller.tree.metadata_tree import GetData, Operation, SetData
from odradek.controller.znodes.acl_nodes import STORES, encode_acls
from odradek.protocol.errors import ErrorCode
from tests.support.acls.authorizers import (
    ALL,
    ALLOW,
    DENY,
    LITERAL,
    NODE,
    PREFIXED,
    READ,
    WRITE,
    Brokers,
    binding,
    brokers,
    client_of,
    create,
    filter_of,
    may,
    stored,
)
from tests.support.async_test import async_test
from tests.support.in_process.loop_turns import most_in_a_turn


@async_test
async def test_a_change_by_another_broker_in_between_is_not_overwritten() -> None:
    async with brokers() as cluster:
        one, other = await cluster.start(), await cluster.start()
        await create(other, binding())
        await cluster.settle()
        for listener in other._listeners:
            listener.stop()  # it does not hear of the next change: the version that it knows is old
        await create(one, binding(operation=WRITE))
        adding = asyncio.ensure_future(create(other, binding(operation=AclOperation.ALTER)))
        await cluster.settle()
        assert not adding.done(), "it backs off before it reads the node again"
        cluster.cluster.clock.advance(RETRY_BACKOFF_MS + 50)
        cluster.cluster.timer.advance()
        assert await adding == [None]
        restarted = await cluster.start()
        for authorizer in (other, restarted):
            operations = {found.entry.operation for found in stored(authorizer)}
            assert operations == {READ, WRITE, AclOperation.ALTER}


@async_test
async def test_a_node_that_changes_each_time_is_given_up() -> None:
    async with brokers() as cluster:
        one = await cluster.start()
        await create(one, binding())
        adding = asyncio.ensure_future(create(one, binding(operation=WRITE)))
        for attempt in range(MAX_UPDATE_RETRIES + 1):
            assert not adding.done(), attempt
            await _spoil(cluster, one)
            await cluster.settle()
            cluster.cluster.clock.advance(RETRY_BACKOFF_MS + 50)
            cluster.cluster.timer.advance()
        assert await adding == [ErrorCode.UNKNOWN_SERVER_ERROR]


async def _spoil(cluster: Brokers, authorizer: AclAuthorizer) -> None:
    """Have the version of the node that the authorizer read be an old one."""
    read = authorizer._store._read

    async def read_and_change(*args: object) -> object:
        found = await read(*args)  # type: ignore[arg-type]
        node = await cluster.client.tree.run(GetData(NODE))
        await cluster.client.tree.run(SetData(NODE, node.data))
        return found

    if authorizer._store._read.__name__ != "read_and_change":
        authorizer._store._read = read_and_change  # type: ignore[assignment, method-assign]
        node = await cluster.client.tree.run(GetData(NODE))
        await cluster.client.tree.run(SetData(NODE, node.data))


@async_test
async def test_notifications_are_written_as_by_kafka_and_expire() -> None:
    async with brokers() as cluster:
        one = await cluster.start()
        await create(one, binding(), binding("u", pattern_type=PREFIXED))
        await create(one, binding())  # no change
        client = cluster.client
        assert await client.children("/kafka-acl-changes") == ("acl_changes_0000000000",)
        node = await client.get("/kafka-acl-changes/acl_changes_0000000000")
        assert node is not None
        assert node.data == b"TOPIC:t"
        assert await client.children("/kafka-acl-extended-changes") == ("acl_changes_0000000000",)
        cluster.cluster.clock.advance(CHANGE_EXPIRATION_MS + 1)
        await create(one, binding(operation=WRITE))
        await cluster.settle()
        assert await client.children("/kafka-acl-changes") == ("acl_changes_0000000001",)


@async_test
async def test_many_acls_are_stored_read_and_deleted_in_groups() -> None:
    async with brokers() as cluster:
        one, other = await cluster.start(), await cluster.start()
        many = [binding(f"t{number}", pattern_type=(LITERAL, PREFIXED)[number % 2]) for number in range(1_100)]
        assert await create(one, *many) == [None] * len(many)
        for _ in range(200):
            await cluster.settle()
            if other.acl_count == len(many):
                break
        assert set(stored(other)) == set(many)
        (result,) = await one.delete_acls(client_of(), [filter_of(None, PatternType.ANY)])
        assert {found for found, _ in result.deleted} == set(many)
        assert await cluster.client.children("/kafka-acl/Topic") == ()


@async_test
async def test_many_filters_for_many_entries_let_the_loop_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with brokers() as cluster:
        one = await cluster.start()
        many = [binding(principal=f"User:{number}") for number in range(500)]
        await create(one, *many)
        looked_at: list[AccessControlEntry] = []

        def looking(filters: Mapping[tuple[object, ...], int], entry: AccessControlEntry) -> int | None:
            looked_at.append(entry)
            return first_match(filters, entry)

        monkeypatch.setattr(acl_authorizer, "first_match", looking)
        of_all = filter_of("t")
        filters = [of_all._replace(entry=of_all.entry._replace(principal=found.entry.principal)) for found in many[1:]]
        results: list[AclDeleteResult] = []

        async def delete() -> None:
            results.extend(await one.delete_acls(client_of(), filters))

        assert await most_in_a_turn(delete(), lambda: len(looked_at)) <= ITEMS_A_TURN
        assert len(looked_at) == len(many)
        assert results == [(None, ((found, None),)) for found in many[1:]]
        assert stored(one) == many[:1]


@async_test
async def test_a_start_asks_for_many_nodes_before_the_first_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, 10,000 would take ZooKeeper's round trip 10,000 times."""
    async with brokers() as cluster:
        one = await cluster.start()
        many = [binding(f"t{number}", pattern_type=(LITERAL, PREFIXED)[number % 2]) for number in range(1_100)]
        await create(one, *many)
        asked: list[int] = []
        stores = tuple(f"{path}/" for path in STORES.values())
        submit = EmbeddedTree.submit

        async def counted(tree: EmbeddedTree, operations: Sequence[Operation[object]]) -> object:
            paths = [each.path for each in operations if isinstance(each, GetData)]
            if tree is not cluster.trees[0]:
                asked.append(sum(path.startswith(stores) for path in paths))
            return await submit(tree, operations)

        monkeypatch.setattr(EmbeddedTree, "submit", counted)
        restarted = await cluster.start()
        assert restarted.acl_count == len(many)
        assert [count for count in asked if count] == [NODES_AT_ONCE, NODES_AT_ONCE, len(many) - 2 * NODES_AT_ONCE]


@async_test
async def test_a_denial_holds_while_brokers_race_for_its_node() -> None:
    """Each broker loses some of the races, and no change is lost; whatever is allowed meanwhile, the denial decides."""
    async with brokers() as cluster:
        both = [await cluster.start(), await cluster.start()]
        await create(both[0], binding(permission=DENY))
        await cluster.settle()
        operations = [operation for operation in AclOperation if operation not in (READ, AclOperation.UNKNOWN)][1:]
        racing = [
            asyncio.ensure_future(_race(authorizer, operations[number::2])) for number, authorizer in enumerate(both)
        ]
        while not all(task.done() for task in racing):
            assert [may(authorizer) for authorizer in both] == [False, False]
            await asyncio.sleep(0)
            cluster.cluster.clock.advance(RETRY_BACKOFF_MS)
            cluster.cluster.timer.advance()
        for task in racing:
            task.result()
        await cluster.settle()
        for authorizer in (*both, await cluster.start()):
            allowed = {found.entry.operation for found in stored(authorizer)} - {READ}
            assert allowed == set(operations)


async def _race(authorizer: AclAuthorizer, operations: list[AclOperation]) -> None:
    gone = filter_of("t")._replace(entry=ALL.entry._replace(operation=READ, permission_type=ALLOW))
    for operation in operations:
        assert await create(authorizer, binding(), binding(operation=operation)) == [None, None]
        await authorizer.delete_acls(client_of(), [gone])


@async_test
async def test_a_retry_that_finds_its_change_done_notifies_all_the_same() -> None:
    """The answer to the first attempt was lost with the connection: nobody was told of what it wrote."""
    async with brokers() as cluster:
        one, other = await cluster.start(), await cluster.start()
        await create(one, binding())
        await cluster.settle()
        both = [binding().entry, binding(operation=WRITE).entry]
        await cluster.client.tree.run(SetData(NODE, encode_acls(both)))
        adding = asyncio.ensure_future(create(one, binding(operation=WRITE)))
        await cluster.settle()
        cluster.cluster.clock.advance(RETRY_BACKOFF_MS + 50)
        cluster.cluster.timer.advance()
        assert await adding == [None]
        await cluster.settle()
        assert {found.entry for found in stored(other)} == set(both)
