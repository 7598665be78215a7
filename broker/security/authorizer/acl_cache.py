"""All ACLs of the cluster in memory, and the decision whether an operation is allowed. No I/O.

A resource is matched by the literal pattern of its name, by the literal pattern `*`, and by each prefixed pattern with
a prefix of its name. Among the entries of these patterns, one that denies decides before all that allow. An entry that
allows READ, WRITE, DELETE or ALTER also allows DESCRIBE; one that allows ALTER_CONFIGS also allows DESCRIBE_CONFIGS.

For each pattern there is a number for every principal and host of its entries: bit `n` is set if the AclOperation with
code `n` is allowed, bit `16 + n` if it is denied. A decision is the union of these numbers. Its cost does not depend on
the number of entries; it takes one look-up for each different length of a prefix.

Kafka: AclAuthorizer.authorizeAction, AclAuthorizer.matchingAcls, AclAuthorizer.authorizeByResourceType,
AclAuthorizer.updateCache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final, NamedTuple, TypeAlias

from odradek.controller.model.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

DENY_SHIFT: Final = 16

LOOKED_AT: Final = 64
"""Patterns and entries that are compared with a filter in one step, at less than a microsecond each."""

IMPLIED: Final = {
    **dict.fromkeys((AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER), 8),
    AclOperation.ALTER_CONFIGS: 10,
}
"""An operation that is allowed -> the code of the operation that is allowed with it."""

Rules: TypeAlias = Mapping[str, Mapping[str, int]]
"""Principal -> host -> the bits of the module's docstring."""

EntryKey: TypeAlias = tuple[AccessControlEntry, ResourceType, PatternType]


class VersionedAcls(NamedTuple):
    """The entries of one pattern, and the version of its znode."""

    entries: frozenset[AccessControlEntry]
    zk_version: int

    @property
    def exists(self) -> bool:
        return self.zk_version != UNKNOWN_VERSION


UNKNOWN_VERSION: Final = -2
"""The version of a node that does not exist. Kafka: ZkVersion.UnknownVersion."""

NO_ACLS: Final = VersionedAcls(frozenset(), UNKNOWN_VERSION)


class _Patterns:
    """The patterns of one resource type."""

    __slots__ = ("lengths", "literal", "prefix_lengths", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, Rules] = {}
        self.prefixed: dict[str, Rules] = {}
        self.lengths: Counter[int] = Counter()
        """How many prefixes have a length."""
        self.prefix_lengths: tuple[int, ...] = ()
        """Ascending."""

    def put(self, pattern: ResourcePattern, rules: Rules | None) -> None:
        by_name = self.literal if pattern.pattern_type is LITERAL else self.prefixed
        change = (rules is not None) - (pattern.name in by_name)
        if rules is None:
            by_name.pop(pattern.name, None)
        else:
            by_name[pattern.name] = rules
        if by_name is self.prefixed and change:
            self.lengths[len(pattern.name)] += change
            self.prefix_lengths = tuple(sorted(+self.lengths))


class AclCache:
    """See the module. Everything is synchronous, so a decision never sees half a change."""

    def __init__(self) -> None:
        self._acls: dict[ResourcePattern, VersionedAcls] = {}
        self._patterns = {resource_type: _Patterns() for resource_type in ResourceType}
        self._names: dict[EntryKey, set[str]] = {}
        """The names of the patterns that have an entry."""
        self.count = 0
        """Entries of all patterns."""

    def get(self, pattern: ResourcePattern) -> VersionedAcls | None:
        return self._acls.get(pattern)

    def patterns(self) -> list[ResourcePattern]:
        return list(self._acls)

    def update(self, pattern: ResourcePattern, acls: VersionedAcls) -> None:
        """Replace the entries of a pattern. Kafka: AclAuthorizer.updateCache."""
        known = self._acls.get(pattern, NO_ACLS).entries
        if acls.entries:
            self._acls[pattern] = acls
        else:
            self._acls.pop(pattern, None)
        if acls.entries == known:
            return
        self.count += len(acls.entries) - len(known)
        self._patterns[pattern.resource_type].put(pattern, _rules(acls.entries) if acls.entries else None)
        for entry in acls.entries - known:
            self._names.setdefault((entry, pattern.resource_type, pattern.pattern_type), set()).add(pattern.name)
        for entry in known - acls.entries:
            key = (entry, pattern.resource_type, pattern.pattern_type)
            self._names[key].discard(pattern.name)
            if not self._names[key]:
                del self._names[key]

    def bindings(self, acl_filter: AclBindingFilter) -> Iterator[AclBinding | None]:
        """The bindings that match, of those that are stored now. Kafka: AclAuthorizer.acls.

        None after `LOOKED_AT` patterns and entries that do not match: the caller may pause there.
        """
        patterns = acl_filter.pattern.patterns()
        stored = {pattern: self._acls[pattern] for pattern in patterns if pattern in self._acls}
        return _bindings(stored if patterns else self._acls.copy(), acl_filter)

    def is_allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool | None:
        """Whether the entries allow that; None if no pattern matches the resource."""
        patterns = self._patterns[resource_type]
        literal = patterns.literal
        matching = [rules for rules in (literal.get(name), literal.get(WILDCARD)) if rules is not None]
        for length in patterns.prefix_lengths:
            if length > len(name):
                break
            rules = patterns.prefixed.get(name[:length])
            if rules is not None:
                matching.append(rules)
        if not matching:
            return None
        bits = 0
        for rules in matching:
            for of_principal in (rules.get(principal), rules.get(WILDCARD_PRINCIPAL)):
                if of_principal is not None:
                    bits |= of_principal.get(host, 0) | of_principal.get(WILDCARD, 0)
        return bits >> operation & (1 | 1 << DENY_SHIFT) == 1

    def deciding_entry(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> AccessControlEntry | None:
        """The entry after which `is_allowed` decides, for the log. Kafka: AclAuthorizer.matchingAclExists."""
        principals, hosts = (principal, WILDCARD_PRINCIPAL), (host, WILDCARD)
        entries = [
            entry
            for pattern in self._matching(resource_type, name)
            for entry in sorted(self._acls[pattern].entries)
            if entry.principal in principals and entry.host in hosts
        ]
        allowing = [asked for asked, implied in IMPLIED.items() if implied == operation]
        for permission, operations in ((DENY, ()), (ALLOW, allowing)):
            for entry in entries:
                if entry.permission_type is permission and (
                    entry.operation in (operation, AclOperation.ALL) or entry.operation in operations
                ):
                    return entry
        return None

    def _matching(self, resource_type: ResourceType, name: str) -> Iterator[ResourcePattern]:
        prefixes = [name[:length] for length in reversed(self._patterns[resource_type].prefix_lengths)]
        candidates = [ResourcePattern(resource_type, prefix, PREFIXED) for prefix in dict.fromkeys(prefixes)]
        candidates += [ResourcePattern(resource_type, text, LITERAL) for text in dict.fromkeys((WILDCARD, name))]
        return (pattern for pattern in candidates if pattern in self._acls)

    def is_allowed_for_some(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, *, by_default: bool
    ) -> bool:
        """Whether the entries allow the operation on at least one resource of the type.

        `by_default`: whether a resource without ACLs is open to everyone. As in Kafka, operations that others imply
        count only by their own entries. Kafka: AclAuthorizer.authorizeByResourceType.
        """

        def names(permission: AclPermissionType, pattern_type: PatternType) -> list[set[str]]:
            entries = product(
                (principal, WILDCARD_PRINCIPAL), (host, WILDCARD), (operation, AclOperation.ALL), (permission,)
            )
            keys = ((AccessControlEntry(*entry), resource_type, pattern_type) for entry in entries)
            return [self._names[key] for key in keys if key in self._names]

        denied = names(DENY, LITERAL)
        if _has(denied, WILDCARD):
            return False
        if by_default:
            return True
        denied_prefixes = names(DENY, PREFIXED)
        allowed, allowed_prefixes = names(ALLOW, LITERAL), names(ALLOW, PREFIXED)
        if not denied and not denied_prefixes:
            return bool(allowed or allowed_prefixes)

        lengths = self._patterns[resource_type].prefix_lengths

        def is_open(name: str) -> bool:
            return not any(_has(denied_prefixes, name[:length]) for length in lengths if length <= len(name))

        return any(is_open(prefix) for found in allowed_prefixes for prefix in found) or any(
            name == WILDCARD or (not _has(denied, name) and is_open(name)) for found in allowed for name in found
        )


def _bindings(
    stored: Mapping[ResourcePattern, VersionedAcls], acl_filter: AclBindingFilter
) -> Iterator[AclBinding | None]:
    of_pattern, of_entry = acl_filter
    looked_at = 0
    for pattern, acls in stored.items():
        for entry in acls.entries if of_pattern.matches(pattern) else ():
            if of_entry.matches(entry):
                yield AclBinding(pattern, entry)
                continue
            looked_at += 1
            if looked_at % LOOKED_AT == 0:
                yield None
        looked_at += 1
        if looked_at % LOOKED_AT == 0:
            yield None


def _has(sets: Iterable[set[str]], name: str) -> bool:
    return any(name in names for names in sets)


def _rules(entries: Iterable[AccessControlEntry]) -> Rules:
    rules: dict[str, dict[str, int]] = {}
    for principal, host, operation, permission in entries:
        bits = (1 << DENY_SHIFT) - 1 if operation is AclOperation.ALL else 1 << operation
        if permission is DENY:
            bits <<= DENY_SHIFT
        elif permission is not ALLOW:
            bits = 0
        elif operation in IMPLIED:
            bits |= 1 << IMPLIED[operation]
        of_principal = rules.setdefault(principal, {})
        of_principal[host] = of_principal.get(host, 0) | bits
    return rules
