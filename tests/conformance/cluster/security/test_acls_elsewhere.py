"""ACLs in a ZooKeeper of their own (`authorizer.zookeeper.url`), which an Odradek and an Apache Kafka broker share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from kazoo.client import KazooClient

from tests.conformance.cluster.security.test_acls import (
    ALLOW,
    AUTHORIZER,
    BROKERS,
    DENY,
    LITERAL,
    PREFIXED,
    Acl,
    create,
    creation,
    delete,
    on_both,
)
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.processes.apache.apache import ZooKeeper

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def elsewhere(zookeeper: ZooKeeper) -> str:
    return f"{zookeeper.new_chroot()}/deep/acls"


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind, elsewhere: str) -> Cluster:
    """The Odradek broker is the first to start, and makes the chroot."""
    settings = {
        "authorizer.zookeeper.url": elsewhere,
        "authorizer.zookeeper.connection.timeout.ms": "9000",
        "authorizer.zookeeper.session.timeout.ms": "8000",
        "authorizer.zookeeper.max.in.flight.requests": "3",
        "authorizer.zookeeper.ssl.client.enable": "false",
    }
    cluster = new_cluster({0: "apache", 1: target}, AUTHORIZER | settings)
    cluster.start(1)
    cluster.start(0)
    return cluster


@pytest.fixture
def acls(elsewhere: str) -> Iterator[KazooClient]:
    with closing(KazooClient(elsewhere)) as client:
        client.start()
        yield client
        client.stop()


@pytest.mark.parametrize("asked", BROKERS)
def test_acls_of_either_kind_hold_on_both_and_are_elsewhere(
    cluster: Cluster, asked: int, unique: Callable[[str], str], acls: KazooClient
) -> None:
    name = unique("elsewhere")
    create(cluster, asked, creation(name), creation(name, PREFIXED, permission_type=DENY))
    allowed: Acl = (name, LITERAL, "User:ä b", "*", 3, ALLOW)
    denied: Acl = (name, PREFIXED, "User:ä b", "*", 3, DENY)
    on_both(cluster, {allowed, denied}, name)
    assert acls.exists(f"/kafka-acl/Topic/{name}")
    assert acls.exists(f"/kafka-acl-extended/prefixed/Topic/{name}")
    assert delete(cluster, 1 - asked, resource_name_filter=name, pattern_type_filter=LITERAL) == 1
    on_both(cluster, {denied}, name)
    assert not {"kafka-acl", "kafka-acl-extended", "kafka-acl-changes"} & set(cluster.tree.client.get_children("/"))
