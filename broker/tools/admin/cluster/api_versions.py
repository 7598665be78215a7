"""`odradek api-versions`: prints the versions of the APIs of each broker, with the lines of kafka-broker-api-versions.

Kafka: BrokerApiVersionsCommand, NodeApiVersions.toString.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.inter_broker.request_format import versions_request
from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.command.arguments import add_client_options, command_parser
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.protocol.api import API, ApiKey
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

BETWEEN_BROKERS: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
)
"""APIs that clients do not use: a broker that lacks one is not reported."""

NOT_WITH_ZOOKEEPER: Final = {
    55: "DescribeQuorum",
    64: "UnregisterBroker",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    74: "ListClientMetricsResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
}
"""APIs of Apache Kafka 3.9 that no broker in ZooKeeper mode serves; its tool reports them."""


def main(arguments: Sequence[str]) -> int:
    """Print versions. Returns the exit status."""
    return run(parser().parse_args(arguments), _describe)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "api-versions", "Print which versions of the APIs each broker serves, as kafka-broker-api-versions does."
    )
    add_client_options(parser)
    return parser


async def _describe(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    brokers = sorted((await client.metadata()).brokers, key=lambda broker: broker.node_id)
    failed = 0
    for broker in brokers:
        name = f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'})"
        try:
            response = await client.ask_broker(broker.node_id, versions_request(), ApiVersionsResponse)
            check(response.error_code, None, "ApiVersions")
        except (CommandFailed, OSError) as error:
            out.warn(f"{name} -> ERROR: {error}")
            failed += 1
            continue
        served = sorted(response.api_keys, key=lambda api: api.api_key)
        out.table(_rows(broker.node_id, served), _lines(name, served))
    if failed:
        raise CommandFailed(f"{failed} broker(s) do not answer")


def _rows(broker_id: int, served: Sequence[ApiVersion]) -> Iterator[dict[str, object]]:
    for api in served:
        yield {
            "broker": broker_id,
            "api": API[api.api_key].name if api.api_key in API else "UNKNOWN",
            "key": api.api_key,
            "min": api.min_version,
            "max": api.max_version,
            "usable": _usable(api),
        }


def _usable(api: ApiVersion) -> int | None:
    """The highest version that both sides have; None without one."""
    ours = API.get(api.api_key)
    if ours is None or ours.max_version < api.min_version or api.max_version < ours.min_version:
        return None
    return min(ours.max_version, api.max_version)


def _lines(name: str, served: Sequence[ApiVersion]) -> Iterator[str]:
    texts = {api.api_key: _text(api) for api in served}
    known = {int(key): spec.name for key, spec in API.items() if key not in BETWEEN_BROKERS} | NOT_WITH_ZOOKEEPER
    for key, api in known.items():
        if key not in texts:
            texts[key] = f"{api}({key}): UNSUPPORTED"
    yield f"{name} -> ("
    yield ",\n".join(f"\t{texts[key]}" for key in sorted(texts))
    yield ")"


def _text(api: ApiVersion) -> str:
    low, high = api.min_version, api.max_version
    versions = str(low) if low == high else f"{low} to {high}"
    ours = API.get(api.api_key)
    if ours is None:
        return f"UNKNOWN({api.api_key}): {versions}"
    usable = _usable(api)
    if usable is not None:
        fits = f"usable: {usable}"
    else:
        fits = "unusable: node too new" if ours.max_version < low else "unusable: node too old"
    return f"{ours.name}({api.api_key}): {versions} [{fits}]"
