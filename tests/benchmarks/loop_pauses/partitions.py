"""Many partitions: topics with overrides are made, described, asked for in every request that can name them, loaded
after a clean stop and after a kill, and deleted.
"""

from __future__ import annotations

import time

from odradek.protocol.api import ApiKey
from tests.benchmarks.group_offsets import GROUP, TRANSACTION, commit, find_coordinator
from tests.benchmarks.loop_pauses.requests_naming import LARGE_REQUESTS, PER_TOPIC, ask, requests_about_all
from tests.benchmarks.loop_pauses.watch import WatchedBroker, print_header
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

TIMEOUT_MS = 120_000
OVERRIDES = [{"name": "retention.ms", "value": "3600000"}, {"name": "segment.ms", "value": "3600000"}]


def run(watched: WatchedBroker, count: int) -> None:
    """`count` partitions."""
    broker = watched.broker
    names = [f"topic-{number:04d}" for number in range(count // PER_TOPIC)]
    print_header(f"{count} partitions in {len(names)} topics")
    broker.start()
    with RawClient(broker.host, broker.port, timeout_s=TIMEOUT_MS / 1000) as client:
        with watched.situation("create the topics, with overrides"):
            topics = [
                {"name": name, "num_partitions": PER_TOPIC, "replication_factor": 1, "configs": OVERRIDES}
                for name in names
            ]
            created = client.call(build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=TIMEOUT_MS), 7)
            assert all(topic.error_code == 0 for topic in created.topics), created  # type: ignore[attr-defined]
        find_coordinator(client, GROUP)
        find_coordinator(client, TRANSACTION)
        commit(client, "group", names[0], PER_TOPIC)
        for name, request, version in requests_about_all(names):
            with watched.situation(name):
                ask(client, request, version)
        for named in (count, 10 * count):
            print_header(f"requests that name {named} partitions")
            # Beyond those that exist there is nothing behind the names.
            indexes = list(range(named // len(names)))
            for name, make, version in LARGE_REQUESTS:
                request = make(names, indexes)
                with watched.situation(name):
                    ask(client, request, version)
    print_header(f"{count} partitions in {len(names)} topics")
    broker.stop()
    watched.start("start after a clean stop")
    wait_until_known(watched, "its controller and its replicas begin", count)
    broker.kill()
    watched.start("start after a kill")
    wait_until_known(watched, "its controller and its replicas begin", count)
    with (
        RawClient(broker.host, broker.port, timeout_s=TIMEOUT_MS / 1000) as client,
        watched.situation("delete the topics"),
    ):
        deleted = client.call(build(ApiKey.DELETE_TOPICS, topic_names=names, timeout_ms=TIMEOUT_MS), 5)
        assert all(topic.error_code == 0 for topic in deleted.responses), deleted  # type: ignore[attr-defined]


def wait_until_known(watched: WatchedBroker, situation: str, count: int) -> None:
    """Until the broker that has started leads all its partitions."""
    broker = watched.broker
    with RawClient(broker.host, broker.port) as client, watched.situation(situation):
        while count > sum(
            partition.leader_id >= 0
            for topic in client.call(build(ApiKey.METADATA, topics=None), 9).topics  # type: ignore[attr-defined]
            for partition in topic.partitions
        ):
            time.sleep(0.2)
