"""Envelope (key 58), served: 0. Requests that one broker forwards to the controller for a client (KIP-590).

In ZooKeeper mode brokers forward only while they migrate to KRaft. Otherwise an Envelope closes the connection, as in
Apache Kafka.

Kafka: KafkaApis.handleEnvelope.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.envelope import EnvelopeRequest

logger = logging.getLogger(__name__)


def handle(broker: Services, ctx: RequestContext, request: EnvelopeRequest) -> None:
    host = ctx.connection.client_host
    logger.info("Closing the connection of %s: it sent an Envelope, and forwarding has not been enabled", host)
    ctx.close_connection()
