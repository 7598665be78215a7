"""`odradek quotas`: prints, sets and removes quotas, under shorter names than kafka-configs.

Kafka: Admin.describeClientQuotas, Admin.alterClientQuotas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.configs.quota_requests import (
    Entity,
    alter_quotas,
    describe_quotas,
    entity_text,
    java_double,
    quota_value,
)
from odradek.broker.tools.command.arguments import add_client_options, command_parser
from odradek.broker.tools.command.columns import tabbed_lines
from odradek.broker.tools.command.failures import CommandFailed
from odradek.controller.admin.client_quotas import CLIENT_ID, IP, USER, MatchType

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

SHORT_NAMES: Final = {
    "produce": "producer_byte_rate",
    "consume": "consumer_byte_rate",
    "requests": "request_percentage",
    "mutations": "controller_mutation_rate",
    "connections": "connection_creation_rate",
}
_ENTITIES: Final = {"user": USER, "client": CLIENT_ID, "ip": IP}
_ALL: Final = "*"
_EXAMPLES: Final = """\
  odradek quotas                                          all quotas
  odradek quotas --user alice                             those with this user, also with a client id
  odradek quotas --user alice --client app --set produce=1048576 consume=2097152
  odradek quotas --default-client --set requests=50       percent of one thread
  odradek quotas --ip 10.0.0.7 --set connections=5        new connections a second
  odradek quotas --user alice --remove produce
"""


def main(arguments: Sequence[str]) -> int:
    """Print, set or remove quotas. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if (options.set or options.remove) and not _entity(options):
        command.error("--set and --remove need a user, a client or an ip")
    return run(options, _work)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("quotas", "Print, set and remove quotas of users, client ids and ips.", examples=_EXAMPLES)
    which = parser.add_argument_group("the entity")
    for name, what in (("user", "NAME"), ("client", "ID"), ("ip", "ADDRESS")):
        one = which.add_mutually_exclusive_group()
        one.add_argument(f"--{name}", metavar=what)
        one.add_argument(f"--default-{name}", action="store_true", help=f"each {name} without quotas of its own")
    names = ", ".join(f"{short} or {name}" for short, name in SHORT_NAMES.items())
    parser.add_argument("--set", action="extend", nargs="+", default=[], metavar="QUOTA=N", help=f"QUOTA: {names}")
    parser.add_argument("--remove", action="extend", nargs="+", default=[], metavar="QUOTA")
    add_client_options(parser)
    return parser


def _entity(options: argparse.Namespace) -> Entity:
    entity: dict[str, str | None] = {}
    for name, kind in _ENTITIES.items():
        if getattr(options, name) is not None:
            entity[kind] = getattr(options, name)
        elif getattr(options, f"default_{name}"):
            entity[kind] = None
    return entity


async def _work(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    entity = _entity(options)
    if options.set or options.remove:
        added = {}
        for text in options.set:
            name, equals, value = text.partition("=")
            if not equals:
                raise CommandFailed(f"--set takes QUOTA=N: {text}")
            key = SHORT_NAMES.get(name, name)
            added[key] = quota_value(key, value)
        removed = [SHORT_NAMES.get(name, name) for name in options.remove]
        await alter_quotas(client, entity, added, removed)
        out.result(
            [{"entity": dict(entity), "set": added, "removed": removed}],
            [f"Completed updating quotas of {entity_text(entity)}."],
        )
        return
    wanted: dict[str, tuple[MatchType, str | None]] = {
        kind: (MatchType.DEFAULT, None) if name is None else (MatchType.EXACT, name) for kind, name in entity.items()
    }
    found = await describe_quotas(client, wanted, strict=False)
    rows = [
        {
            **{f"{kind.removesuffix('-id')}": _name(quotas.entity, kind) for kind in _ENTITIES.values()},
            "quota": key,
            "value": value,
        }
        for quotas in found
        for key, value in sorted(quotas.values.items())
    ]
    rows.sort(key=lambda row: tuple(str(cell) for cell in row.values()))
    cells = [[_cell(value) for value in row.values()] for row in rows]
    out.table(rows, tabbed_lines([("User", "Client", "Ip", "Quota", "Value"), *cells]))


def _name(entity: Entity, kind: str) -> str | None:
    """The name of an entity, `*` for the default one, None where the quota does not depend on the type."""
    if kind not in entity:
        return None
    name = entity[kind]
    return _ALL if name is None else name


def _cell(value: object) -> object:
    if isinstance(value, float):
        return java_double(value)
    return "-" if value is None else value
