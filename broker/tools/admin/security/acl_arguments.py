"""The options of `odradek acls`, and the resources and entries that they name.

Kafka: AclCommand.AclCommandOptions, AclCommand.getResourceFilterToAcls.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Final

from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser
from odradek.controller.model.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
    check_principal,
    code_of_name,
    pascal_name,
)

_EXAMPLES: Final = """\
  odradek acls --list                                        all ACLs
  odradek acls --add --allow-principal User:alice --producer --topic orders
  odradek acls --add --allow-principal User:bob --operation Read --topic orders- --resource-pattern-type prefixed
  odradek acls --list --topic orders-eu --resource-pattern-type match      those that affect a topic
  odradek acls --remove --topic orders --force
"""

_RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
_LISTS: Final = ("allow_host", "allow_principal", "deny_host", "deny_principal")
_CLUSTER: Final = ResourcePatternFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)

Entries = frozenset[AccessControlEntry]


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    command = command_parser("acls", "List, add and remove ACLs.", examples=_EXAMPLES)
    add_actions(command, {"list": "print ACLs", "add": "add ACLs", "remove": "remove ACLs"})
    which = command.add_argument_group("resources")
    for name in _RESOURCES:
        option = name.replace("_", "-")
        which.add_argument(f"--{option}", action="append", metavar="NAME", help="'*' stands for all; may be repeated")
    which.add_argument("--cluster", action="store_true")
    which.add_argument(
        "--resource-pattern-type",
        type=_pattern_type,
        default=PatternType.LITERAL,
        metavar="TYPE",
        help="literal (default) or prefixed; to list and remove also any (the name itself, of any type) and match "
        "(all that affect the name)",
    )
    who = command.add_argument_group("entries")
    for name, text in (
        ("allow-principal", "User:NAME; User:* stands for all"),
        ("deny-principal", "denied, whatever else is allowed"),
        ("allow-host", "for --allow-principal; default *"),
        ("deny-host", "for --deny-principal; default *"),
    ):
        who.add_argument(f"--{name}", action="append", metavar="TEXT", help=text)
    names = ", ".join(pascal_name(operation) for operation in AclOperation if operation > AclOperation.ANY)
    who.add_argument("--operation", action="append", metavar="NAME", help=f"default All: {names}")
    who.add_argument("--producer", action="store_true", help="Write, Describe and Create of a topic")
    who.add_argument("--consumer", action="store_true", help="Read and Describe of a topic, Read of a group")
    who.add_argument("--idempotent", action="store_true", help="with --producer: IdempotentWrite of the cluster")
    command.add_argument("--principal", action="append", metavar="TEXT", help="list the ACLs of this principal only")
    command.add_argument("--force", action="store_true", help="remove without a question")
    add_client_options(command)
    return command


def _pattern_type(text: str) -> PatternType:
    found = next((kind for kind in PatternType if kind and kind.name == text.upper()), None)
    if found is None:
        raise argparse.ArgumentTypeError(f"Unknown resource-pattern-type: {text}")
    return found


def why_refused(options: argparse.Namespace) -> str | None:
    """What is wrong with the options together, in Kafka's words. Kafka: AclCommandOptions.checkArgs."""

    def together(one: str, *others: str) -> str | None:
        wrong = [other for other in others if getattr(options, one) and getattr(options, other)]
        return _exclusive(one, wrong[0]) if wrong else None

    if options.action == "list":
        wrong = [other for other in ("producer", "consumer", *_LISTS) if getattr(options, other)]
        if wrong:
            return _exclusive("list", wrong[0])
    for role in ("producer", "consumer"):
        refusal = together(role, "operation", "deny_principal", "deny_host")
        if refusal is not None:
            return refusal
    if options.principal and options.action != "list":
        return "The --principal option is only available if --list is set"
    if options.producer and not options.topic:
        return "With --producer you must specify a --topic"
    if options.idempotent and not options.producer:
        return "The --idempotent option is only available if --producer is set"
    if options.consumer and (
        not (options.topic and options.group)
        or (not options.producer and (options.cluster or options.transactional_id))
    ):
        return (
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )
    return None


def _exclusive(one: str, other: str) -> str:
    return f'Option "[{one}]" can\'t be used with option "[{other.replace("_", "-")}]"'


def resource_filters(options: argparse.Namespace) -> list[ResourcePatternFilter]:
    """The named resources, in the order of the help. Kafka: AclCommand.getResourceFilter."""
    pattern_type = options.resource_pattern_type
    filters = [
        ResourcePatternFilter(kind, name.strip(), pattern_type)
        for option, kind in _RESOURCES.items()
        for name in getattr(options, option) or ()
    ]
    if pattern_type is PatternType.LITERAL and (options.cluster or options.idempotent):
        filters.append(_CLUSTER)
    return list(dict.fromkeys(filters))


def entries_by_resource(options: argparse.Namespace) -> dict[ResourcePatternFilter, Entries]:
    """The entries to add or remove; none for all of a resource.

    Raises: ValueError with Kafka's message. Kafka: AclCommand.getResourceFilterToAcls.
    """
    filters = resource_filters(options)
    if not filters:
        raise ValueError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    if options.idempotent and _CLUSTER not in filters:
        filters.append(_CLUSTER)
    found: dict[ResourcePatternFilter, Entries] = {}
    roles = _roles(options)
    if not roles:
        found = dict.fromkeys(filters, _entries(options, _operations(options)))
    for role in roles:
        for wanted in filters:
            if wanted.resource_type in role:
                entries = _entries(options, role[wanted.resource_type])
                found[wanted] = found.get(wanted, frozenset()) | entries
    for wanted, entries in found.items():
        valid = (AclOperation.ALL, *SUPPORTED_OPERATIONS[wanted.resource_type])
        if any(entry.operation not in valid for entry in entries):
            names = ", ".join(map(pascal_name, valid))
            raise ValueError(f"ResourceType {wanted.resource_type.name} only supports operations {names}")
    return found


def _roles(options: argparse.Namespace) -> list[dict[ResourceType, tuple[AclOperation, ...]]]:
    """Kafka: AclCommand.getProducerResourceFilterToAcls, AclCommand.getConsumerResourceFilterToAcls."""
    read, write, describe = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
    roles: list[dict[ResourceType, tuple[AclOperation, ...]]] = []
    if options.producer:
        roles.append(
            {
                ResourceType.TOPIC: (write, describe, AclOperation.CREATE),
                ResourceType.TRANSACTIONAL_ID: (write, describe),
                **({ResourceType.CLUSTER: (AclOperation.IDEMPOTENT_WRITE,)} if options.idempotent else {}),
            }
        )
    if options.consumer:
        roles.append({ResourceType.TOPIC: (read, describe), ResourceType.GROUP: (read,)})
    return roles


def _operations(options: argparse.Namespace) -> tuple[AclOperation, ...]:
    return tuple(code_of_name(AclOperation, name.strip()) for name in options.operation or ("All",))


def _entries(options: argparse.Namespace, operations: tuple[AclOperation, ...]) -> Entries:
    """Kafka: AclCommand.getAcl."""
    entries: set[AccessControlEntry] = set()
    for principals, hosts, permission in (
        (options.allow_principal, options.allow_host, AclPermissionType.ALLOW),
        (options.deny_principal, options.deny_host, AclPermissionType.DENY),
    ):
        found = [host.strip() for host in hosts or (WILDCARD,)]
        for principal, host, operation in product(principals or (), found, operations):
            entries.add(AccessControlEntry(check_principal(principal.strip()), host, operation, permission))
    return frozenset(entries)
