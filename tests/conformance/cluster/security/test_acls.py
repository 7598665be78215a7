"""ACLs of a cluster with an Odradek and an Apache Kafka broker: those of either kind, and of tools, hold on both."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator

import pytest

from odradek.broker import cli
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.processes.apache.tool_runs import Printed, run_in_one_jvm
from tests.support.processes.apache.tools import TOOL_CLASSES
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
BROKERS = (0, 1)
LITERAL, PREFIXED = 3, 4
ALLOW, DENY = 3, 2
ALL, DESCRIBE, ALTER = 2, 8, 7
CLUSTER = {"resource_type": 4, "principal": "User:ANONYMOUS"}
Acl = tuple[str, int, str, str, int, int]


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    cluster = new_cluster({0: "apache", 1: target}, AUTHORIZER)
    cluster.start()
    return cluster


@pytest.fixture(scope="module")
def alone(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    """One broker: a tool asks any broker of a cluster, and others hear of a change a moment later."""
    cluster = new_cluster({0: target}, AUTHORIZER)
    cluster.start()
    return cluster


@pytest.fixture(params=BROKERS)
def asked(request: pytest.FixtureRequest) -> int:
    """The broker that gets the changes."""
    chosen: int = request.param
    return chosen


def creation(name: str, pattern_type: int = LITERAL, **fields: object) -> dict[str, object]:
    new = {"resource_type": 2, "principal": "User:ä b", "host": "*", "operation": 3, "permission_type": ALLOW}
    return {**new, "resource_name": name, "resource_pattern_type": pattern_type, **fields}


def create(cluster: Cluster, broker_id: int, *creations: dict[str, object]) -> None:
    with RawClient(cluster.host(broker_id), cluster.ports[broker_id]) as client:
        answer = client.call(build(ApiKey.CREATE_ACLS, creations=list(creations)), 3)
    assert [result.error_code for result in answer.results] == [0] * len(creations)  # type: ignore[attr-defined]


def delete(cluster: Cluster, broker_id: int, **wanted: object) -> int:
    anything = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
    rest = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    with RawClient(cluster.host(broker_id), cluster.ports[broker_id]) as client:
        answer = client.call(build(ApiKey.DELETE_ACLS, filters=[{**anything, **rest, **wanted}]), 3)
    (result,) = answer.filter_results  # type: ignore[attr-defined]
    assert result.error_code == 0
    return len(result.matching_acls)


def described(cluster: Cluster, broker_id: int, stem: str = "") -> set[Acl] | ErrorCode:
    """The ACLs of names that begin so, or the error."""
    anything = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
    rest = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    with RawClient(cluster.host(broker_id), cluster.ports[broker_id]) as client:
        answer = client.call(build(ApiKey.DESCRIBE_ACLS, **anything, **rest), 3)
    if answer.error_code:  # type: ignore[attr-defined]
        return ErrorCode(answer.error_code)  # type: ignore[attr-defined]
    return {
        (found.resource_name, found.pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type)
        for found in answer.resources  # type: ignore[attr-defined]
        for acl in found.acls
        if found.resource_name.startswith(stem)
    }


def on_both(cluster: Cluster, expected: set[Acl] | ErrorCode, stem: str = "") -> None:
    for broker_id in BROKERS:
        eventually(lambda broker_id=broker_id: described(cluster, broker_id, stem), accept=lambda f: f == expected)  # type: ignore[misc]


def test_acls_that_one_broker_sets_hold_on_both(cluster: Cluster, asked: int, unique: Callable[[str], str]) -> None:
    name = unique("shared")
    create(cluster, asked, creation(name), creation(name, operation=4), creation(name, PREFIXED, permission_type=DENY))
    shared: set[Acl] = {
        (name, LITERAL, "User:ä b", "*", 3, ALLOW),
        (name, LITERAL, "User:ä b", "*", 4, ALLOW),
        (name, PREFIXED, "User:ä b", "*", 3, DENY),
    }
    on_both(cluster, shared, name)
    assert delete(cluster, 1 - asked, resource_name_filter=name, pattern_type_filter=LITERAL, operation=4) == 1
    on_both(cluster, {acl for acl in shared if acl[4] == 3}, name)
    assert delete(cluster, asked, resource_name_filter=f"{name}-longer", pattern_type_filter=2) == 1
    on_both(cluster, {acl for acl in shared if acl[4] == 3 and acl[1] == LITERAL}, name)
    assert delete(cluster, 1 - asked, resource_name_filter=name) == 1
    on_both(cluster, set(), name)


def test_both_write_the_same_bytes(cluster: Cluster, unique: Callable[[str], str]) -> None:
    names = [unique("bytes") for _ in BROKERS]
    zookeeper = cluster.tree.client
    written = []
    for broker_id, name in enumerate(names):
        before = {
            path: set(zookeeper.get_children(path)) for path in ("/kafka-acl-changes", "/kafka-acl-extended-changes")
        }
        fields = {"resource_type": 5, "operation": 10, "principal": "User:ä b"}
        create(cluster, broker_id, creation(name, **fields), creation(name, PREFIXED, **fields))
        paths = [f"/kafka-acl/TransactionalId/{name}", f"/kafka-acl-extended/prefixed/TransactionalId/{name}"]
        for path, known in before.items():
            (new,) = set(zookeeper.get_children(path)) - known
            paths.append(f"{path}/{new}")
        written.append([zookeeper.get(path)[0].replace(name.encode(), b"NAME") for path in paths])
        assert delete(cluster, broker_id, resource_name_filter=name) == 2
    assert written[0] == written[1]
    types = ["Cluster", "DelegationToken", "Group", "Topic", "TransactionalId", "User"]
    assert sorted(zookeeper.get_children("/kafka-acl")) == types
    assert sorted(zookeeper.get_children("/kafka-acl-extended/prefixed")) == types


def test_a_broker_whose_session_has_expired_reads_all_acls_again(
    cluster: Cluster, asked: int, unique: Callable[[str], str]
) -> None:
    """Also a change that it has no notification of, as if that had expired. (Apache Kafka waits for the next one.)"""
    name = unique("expired")
    create(cluster, asked, creation(name), creation(name, operation=4))
    on_both(cluster, {(name, LITERAL, "User:ä b", "*", operation, ALLOW) for operation in (3, 4)}, name)
    zookeeper, path = cluster.tree.client, f"/kafka-acl/Topic/{name}"
    zookeeper.set(path, zookeeper.get(path)[0].replace(b'"Write"', b'"Delete"'))
    cluster.tree.expire(1)
    eventually(lambda: cluster.tree.broker_epoch(1) is not None)
    expected = {(name, LITERAL, "User:ä b", "*", operation, ALLOW) for operation in (3, 6)}
    reads_again = cluster.brokers[1].target == "odradek"
    if reads_again:
        eventually(lambda: described(cluster, 1, name), accept=lambda found: found == expected)
    # Apache Kafka first deletes what it remembers, is refused, reads the node, and names what it has found both times.
    assert delete(cluster, 1, resource_name_filter=name) == (2 if reads_again else 3)
    on_both(cluster, set(), name)


@pytest.fixture
def without_description(cluster: Cluster, asked: int) -> Iterator[int]:
    create(
        cluster,
        asked,
        creation("kafka-cluster", operation=ALL, **CLUSTER),
        creation("kafka-cluster", operation=DESCRIBE, permission_type=DENY, **CLUSTER),
    )
    yield asked
    assert delete(cluster, 1 - asked, resource_type_filter=4) in (1, 2)


def test_what_is_denied_on_one_broker_is_denied_on_both(cluster: Cluster, without_description: int) -> None:
    on_both(cluster, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert delete(cluster, without_description, resource_type_filter=4, permission_type=DENY) == 1
    on_both(cluster, {("kafka-cluster", LITERAL, "User:ANONYMOUS", "*", ALL, ALLOW)})
    for broker_id in BROKERS:
        text = "Principal = User:ANONYMOUS is Denied Operation = Describe from host = 127.0.0.1 on resource = "
        line = f"{text}Cluster:LITERAL:kafka-cluster for request = DescribeAcls with resourceRefCount = 1"
        if cluster.brokers[broker_id].target == "odradek":
            assert line in cluster.log_text(broker_id)


def test_the_command_and_apaches_tool(alone: Cluster, unique: Callable[[str], str]) -> None:
    """The same lines for the same arguments; the ACLs of either, and those that the tool writes into ZooKeeper."""
    mine, theirs, direct = unique("mine"), unique("theirs"), unique("direct")

    def runs(name: str) -> list[tuple[str, ...]]:
        who = ("--allow-principal", "User:a")
        topic = ("--topic", name)
        return [
            ("--add", *who, *topic, "--operation", "Read", "--allow-host", "10.0.0.1"),
            ("--add", *who, *topic, "--group", name, "--transactional-id", name, "--producer", "--consumer"),
            ("--add", "--deny-principal", "User:b", *topic, "--resource-pattern-type", "prefixed"),
            ("--list", *topic),
            ("--list", "--topic", f"{name}-eu", "--resource-pattern-type", "match"),
            ("--list", *topic, "--group", name, "--principal", "User:a", "--principal", "User:b"),
            ("--remove", *who, *topic, "--operation", "Read", "--allow-host", "10.0.0.1", "--force"),
            ("--list", *topic, "--resource-pattern-type", "any"),
            ("--remove", *topic, "--group", name, "--resource-pattern-type", "any", "--force"),
            ("--list", *topic, "--resource-pattern-type", "any"),
        ]

    zookeeper = ("--authorizer-properties", f"zookeeper.connect={alone.connect}")
    straight = ("--add", "--allow-principal", "User:z", "--topic", direct)
    at = ("--bootstrap-server", alone.bootstrap)
    tool = TOOL_CLASSES["acls"]
    *printed, into_zookeeper = run_in_one_jvm(
        [*([tool, *at, *run] for run in runs(theirs)), [tool, *zookeeper, *straight]]
    )
    assert into_zookeeper.status == 0
    written: set[Acl] = {(direct, LITERAL, "User:z", "*", ALL, ALLOW)}
    eventually(lambda: described(alone, 0, direct), accept=lambda found: found == written)
    for run, apaches in zip(runs(mine), printed, strict=True):
        ours = command(*at, *run)
        assert ours.status == apaches.status == 0, (run, ours, apaches)
        assert sorted(blocks(ours.stdout.replace(mine, "T"))) == sorted(blocks(apaches.stdout.replace(theirs, "T"))), (
            run
        )
    assert command(*at, "--remove", "--topic", direct, "--force").status == 0
    assert described(alone, 0, direct) == set()


def command(*arguments: str) -> Printed:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["acls", *arguments])
    return Printed(status, out.getvalue(), err.getvalue())


def blocks(text: str) -> list[str]:
    """The text of each resource, its entries in order: Apache's tool has them in that of hash tables."""
    found = []
    for block in text.replace("`\nCurrent", "`\n\nCurrent").split("\n\n"):
        head, *entries = block.split("\n")
        found.append("\n".join([head, *sorted(entry.strip() for entry in entries)]))
    return found
