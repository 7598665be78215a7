"""Many filters of ACLs, looked up by what they match.

A DeleteAcls of a megabyte has 40,000 filters, and a node 10,000 entries: all pairs of them would take a minute. The
parts of a filter match a value or everything, so the filters that match an entry are at most sixteen different ones.

Kafka: AclAuthorizer.deleteAcls, which looks at all pairs in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from odradek.controller.model.acls import AclOperation, AclPermissionType

if TYPE_CHECKING:
    from odradek.controller.model.acls import (
        AccessControlEntry,
        AclBindingFilter,
        ResourcePattern,
        ResourcePatternFilter,
    )

EntryFilters: TypeAlias = dict[tuple[object, ...], int]
"""`AccessControlEntryFilter` -> the index of the first one that is equal."""


class FilterIndex:
    """See the module. Filters are added in the order of their indexes."""

    __slots__ = ("_by_pattern",)

    def __init__(self) -> None:
        self._by_pattern: dict[ResourcePatternFilter, EntryFilters] = {}

    def add(self, index: int, acl_filter: AclBindingFilter) -> None:
        of_pattern, of_entry = acl_filter
        self._by_pattern.setdefault(of_pattern, {}).setdefault(of_entry, index)

    def matches(self, stored: Sequence[ResourcePattern]) -> Iterator[tuple[ResourcePattern, EntryFilters] | None]:
        """Each pattern that filters name, or that is stored and matched by some, with their filters of entries.

        A pattern may come several times. None: the next candidate does not match.
        """
        for of_pattern, of_entries in self._by_pattern.items():
            for pattern in of_pattern.patterns() or stored:
                yield (pattern, of_entries) if of_pattern.matches(pattern) else None


def merged(filters: Sequence[EntryFilters]) -> Generator[None, None, Mapping[tuple[object, ...], int]]:
    """The first index of each filter of entries, in steps."""
    if len(filters) == 1:
        return filters[0]
    found: EntryFilters = {}
    for some in filters:
        for of_entry, index in some.items():
            found[of_entry] = min(index, found.get(of_entry, index))
            yield
    return found


def first_match(filters: Mapping[tuple[object, ...], int], entry: AccessControlEntry) -> int | None:
    """The index of the first filter that matches the entry, at a cost that does not depend on their number."""
    return min((filters[found] for found in _filters_of(entry) if found in filters), default=None)


def _filters_of(entry: AccessControlEntry) -> Iterable[tuple[object, ...]]:
    """All that match it. Kafka: AccessControlEntryFilter.matches."""
    principal, host, operation, permission = entry
    return product((None, principal), (None, host), (AclOperation.ANY, operation), (AclPermissionType.ANY, permission))
