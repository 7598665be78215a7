"""`odradek configs`: describes and alters configs, with the options and lines of kafka-configs.

Kafka: ConfigCommand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.configs import config_resources
from odradek.broker.tools.admin.configs.config_entities import DEFAULT, ENTITY_TYPES, configs_to_add, entities_of
from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

_EXAMPLES: Final = """\
  odradek configs --describe --topic t --all
  odradek configs --alter --topic t --add-config retention.ms=86400000,cleanup.policy=[compact,delete]
  odradek configs --alter --broker-defaults --add-config log.cleaner.threads=2
  odradek configs --alter --broker-logger 0 --add-config odradek.broker=DEBUG
  odradek configs --alter --user alice --client app --add-config producer_byte_rate=1048576
  odradek configs --zookeeper zk:2181 --alter --user admin --add-config SCRAM-SHA-512=[password=secret]
"""


def main(arguments: Sequence[str]) -> int:
    """Describe or alter configs. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    changes = (options.add_config, options.add_config_file, options.delete_config or None)
    if options.action == "describe" and any(change is not None for change in changes):
        command.error("--describe takes none of --add-config, --add-config-file, --delete-config")
    if options.action == "alter" and all(change is None for change in changes):
        command.error(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if [options.bootstrap_server, options.zookeeper, options.metadata].count(None) < 2:
        command.error("Only one of --bootstrap-server, --zookeeper and --metadata can be specified")
    if options.zk_tls_config_file is not None and options.zookeeper is None:
        command.error("Only the --zookeeper option can be used with the --zk-tls-config-file option.")
    if options.zookeeper is not None or options.metadata is not None:
        from odradek.broker.tools.admin.configs import stored_configs

        return stored_configs.main(options)
    return run(options, _work)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("configs", "Describe and alter configs, as kafka-configs does.", examples=_EXAMPLES)
    add_actions(parser, {"describe": "print configs", "alter": "set or delete configs"})
    parser.add_argument("--all", action="store_true", help="describe also what is not set for the entity itself")
    parser.add_argument("--add-config", metavar="K=V,K=[V,V]", help="configs to set")
    parser.add_argument("--add-config-file", metavar="FILE", help="a properties file with configs to set")
    parser.add_argument(
        "--delete-config", action="extend", default=[], type=_keys, metavar="K,K", help="configs to delete"
    )
    parser.add_argument("--force", action="store_true", help="accepted, without effect: nothing is asked")
    which = parser.add_argument_group("the entity")
    which.add_argument("--entity-type", action="append", default=[], metavar="TYPE", help=", ".join(ENTITY_TYPES))
    which.add_argument("--entity-name", action="append", dest="entity_names", default=[], metavar="NAME")
    which.add_argument(
        "--entity-default",
        action="append_const",
        const=DEFAULT,
        dest="entity_names",
        help="the default of brokers, users, clients or ips",
    )
    for name, what in (
        ("topic", "NAME"),
        ("broker", "ID"),
        ("broker-logger", "ID"),
        ("user", "NAME"),
        ("client", "ID"),
        ("ip", "ADDRESS"),
    ):
        which.add_argument(f"--{name}", metavar=what)
    for name in ("broker", "user", "client", "ip"):
        which.add_argument(f"--{name}-defaults", action="store_true")
    stored = parser.add_argument_group("without a broker: SCRAM credentials of users, configs of stopped brokers")
    stored.add_argument(
        "--zookeeper", metavar="HOST:PORT", help="the metadata is in this ZooKeeper; deprecated in Kafka"
    )
    stored.add_argument(
        "--zk-tls-config-file", metavar="FILE", help="zookeeper.ssl.* and odradek.zookeeper.sasl.* for --zookeeper"
    )
    stored.add_argument("--metadata", metavar="DIR", help="the metadata.dir of a single node that is stopped")
    add_client_options(parser)
    return parser


def _keys(text: str) -> list[str]:
    return [key.strip() for key in text.split(",") if key.strip()]


async def _work(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    entities = entities_of(options)
    is_change = options.action == "alter"
    added = configs_to_add(options.add_config, options.add_config_file) if is_change else {}
    if entities.type not in config_resources.RESOURCE_TYPES:
        from odradek.broker.tools.admin.configs import user_configs  # loads JSON and OpenSSL's hashes

        if is_change:
            await user_configs.alter(client, out, entities, added, options.delete_config)
        else:
            await user_configs.describe(client, out, entities)
    elif is_change:
        await config_resources.alter(client, out, entities, added, options.delete_config)
    else:
        await config_resources.describe(client, out, entities, with_all=options.all)
