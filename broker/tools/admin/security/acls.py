"""`odradek acls`: lists, adds and removes ACLs with the options and lines of kafka-acls.

Kafka: AclCommand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.security.acl_arguments import entries_by_resource, parser, resource_filters, why_refused
from odradek.broker.tools.admin.security.acl_requests import create_acls, delete_acls, describe_acls
from odradek.controller.model.acls import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    check_principal,
    pascal_name,
)

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.admin.security.acl_arguments import Entries
    from odradek.broker.tools.command.output import Output

_ANY_ENTRY: Final = AccessControlEntryFilter(None, None, AclOperation.ANY, AclPermissionType.ANY)
_ANY_RESOURCE: Final = ResourcePatternFilter(ResourceType.ANY, None, PatternType.ANY)


def main(arguments: Sequence[str]) -> int:
    """List, add or remove ACLs. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    refusal = why_refused(options)
    if refusal is not None:
        command.error(refusal)
    try:
        if options.action == "list":
            options.principals = [check_principal(text.strip()) for text in options.principal or ()]
            return run(options, _list)
        wanted = entries_by_resource(options)
    except ValueError as error:
        command.error(str(error))
    if options.action == "add":
        pattern_type = options.resource_pattern_type
        if not pattern_type.is_specific:
            name = pattern_type.name
            command.error(f"A '--resource-pattern-type' value of '{name}' is not valid when adding acls.")
        if not all(wanted.values()):
            command.error("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    options.wanted = wanted
    return run(options, _add if options.action == "add" else _remove)


async def _add(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    wanted: Mapping[ResourcePatternFilter, Entries] = options.wanted
    for (resource_type, name, pattern_type), entries in wanted.items():
        assert name is not None, "an option has a name"
        pattern = ResourcePattern(resource_type, name, pattern_type)
        bindings = [AclBinding(pattern, entry) for entry in sorted(entries)]
        out.result(map(_row, bindings), _block(f"Adding ACLs for resource `{pattern}`: ", entries))
        await create_acls(client, bindings)


async def _remove(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    wanted: Mapping[ResourcePatternFilter, Entries] = options.wanted
    for pattern, entries in wanted.items():
        if entries:
            first, *rest = _block("Are you sure you want to remove ACLs: ", entries)
            question = "\n".join([first, *rest[:-1], f" from resource filter `{pattern}`? (y/n)"])
        else:
            question = f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)"
        if not options.force:
            out.note(question)
            if sys.stdin.readline().strip().lower() != "y":
                continue
        filters = [AccessControlEntryFilter(*entry) for entry in sorted(entries)] or [_ANY_ENTRY]
        deleted = await delete_acls(client, [AclBindingFilter(pattern, one) for one in filters])
        out.result([{"resource_filter": str(pattern), "removed": deleted}], ())


async def _list(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    found: set[AclBinding] = set()
    for pattern in resource_filters(options) or [_ANY_RESOURCE]:
        found.update(await describe_acls(client, AclBindingFilter(pattern, _ANY_ENTRY)))
    if not options.principals:
        out.table(map(_row, sorted(found)), _listing(found))
    for principal in dict.fromkeys(options.principals):
        some = [binding for binding in found if binding.entry.principal == principal]
        lines = [f"ACLs for principal `{principal}`", *_listing(some)]
        out.table(map(_row, sorted(some)), lines)


def _listing(bindings: Iterable[AclBinding]) -> list[str]:
    by_pattern: dict[ResourcePattern, set[AccessControlEntry]] = {}
    for pattern, entry in sorted(bindings):
        by_pattern.setdefault(pattern, set()).add(entry)
    return [
        line
        for pattern, entries in by_pattern.items()
        for line in _block(f"Current ACLs for resource `{pattern}`: ", entries)
    ]


def _block(head: str, entries: Iterable[AccessControlEntry]) -> list[str]:
    """Kafka's lines: the first entry comes after a space, the last before one."""
    lines = [f"\t{entry}" for entry in sorted(entries)]
    lines[0] = f" {lines[0]}"
    lines[-1] = f"{lines[-1]} "
    return [head, *lines, ""]


def _row(binding: AclBinding) -> dict[str, object]:
    (kind, name, pattern_type), (principal, host, operation, permission) = binding
    return {
        "resource_type": pascal_name(kind),
        "name": name,
        "pattern_type": pattern_type.name.lower(),
        "principal": principal,
        "host": host,
        "operation": pascal_name(operation),
        "permission": pascal_name(permission),
    }
