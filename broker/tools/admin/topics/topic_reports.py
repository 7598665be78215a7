"""`odradek topics --describe`: asks for what the lines of topics and partitions are made of.

Kafka: TopicCommand.TopicService.describeTopic, TopicCommand.TopicService.listAllReassignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.broker.tools.admin.topics.topic_descriptions import describe, facts, partition_rows
from odradek.broker.tools.admin.topics.topic_selection import REPORTS, existing
from odradek.broker.tools.command.failures import Refused, check
from odradek.controller.model.config_codes import ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from odradek.broker.tools.admin.client.admin_client import AdminClient, Ongoing
    from odradek.broker.tools.command.output import Output


async def describe_topics(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    metadata = await client.metadata(None)
    topics = existing(metadata.topics, options)
    if not topics:
        return
    configs = await _configs(client, [topic.name or "" for topic in topics])
    ongoing = await _reassignments(client)
    live_brokers = {node.node_id for node in metadata.brokers}
    reports = [report for report in REPORTS if getattr(options, report)]
    for topic in topics:
        what = (topic, configs[topic.name or ""], ongoing, live_brokers, reports)
        if out.is_table:
            title = next(iter(describe(*what)), "") if not reports else ""
            out.table(partition_rows(*what), (), title=title.replace("\t", "  "))
        else:
            out.result(facts(*what), describe(*what))


async def _reassignments(client: AdminClient) -> Ongoing:
    """None of them for a client that may not describe the cluster, or if the controller does not know the request."""
    try:
        return await client.reassignments()
    except VersionMismatch:
        return {}
    except Refused as refused:
        if refused.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return {}


async def _configs(client: AdminClient, topics: Sequence[str]) -> dict[str, list[DescribeConfigsResourceResult]]:
    resources = [
        DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configuration_keys=None)
        for topic in topics
    ]
    response = await client.ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    for result in response.results:
        check(result.error_code, result.error_message, f"Configs of {result.resource_name}")
    return {result.resource_name: result.configs for result in response.results}
