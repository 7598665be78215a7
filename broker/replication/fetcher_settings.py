"""Fetcher settings, in a module of their own so that a broker without followers does not import replica_fetcher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.fetch.replication_quota import ReplicationQuota
    from odradek.broker.inter_broker.ports import MakeLink
    from odradek.controller.model.broker_info import EndPoint


class RemoteLeaderSettings(NamedTuple):
    """Identity of this broker, and its `replica.fetch.*` and `replica.socket.timeout.ms`, with Kafka's defaults."""

    broker_id: int
    broker_epoch: Callable[[], int]
    wait_max_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 1024 * 1024
    response_max_bytes: int = 10 * 1024 * 1024
    socket_timeout_ms: int = 30_000
    metadata_version: MetadataVersion = LATEST_PRODUCTION


class FetcherSettings(NamedTuple):
    """The broker settings of a follower, with Kafka's defaults."""

    broker_id: int
    quota: ReplicationQuota
    """`follower.replication.throttled.rate`"""
    backoff_ms: int = 1_000
    """`replica.fetch.backoff.ms`"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FetchersSettings:
    """`end_point` returns the inter-broker address of a live broker, `count` the present `num.replica.fetchers`."""

    make_link: MakeLink
    end_point: Callable[[int], EndPoint | None]
    count: Callable[[], int]
    leader: RemoteLeaderSettings
    fetcher: FetcherSettings
