"""Compared with looking at all filters one after the other."""

from __future__ import annotations

from random import Random

from odradek.broker.security.authorizer.filter_index import EntryFilters, FilterIndex, first_match, merged
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
)
from odradek.timer.sliced_work import run_through

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def random_binding(random: Random) -> AclBinding:
    pattern = ResourcePattern(
        random.choice([ResourceType.TOPIC, ResourceType.GROUP]),
        random.choice(["a", "ab", "*"]),
        random.choice([LITERAL, PREFIXED]),
    )
    entry = AccessControlEntry(
        random.choice(["User:a", "User:b"]),
        random.choice(["*", "h"]),
        random.choice([AclOperation.READ, AclOperation.ALL]),
        random.choice([ALLOW, DENY]),
    )
    return AclBinding(pattern, entry)


def random_filter(random: Random) -> AclBindingFilter:
    (kind, name, pattern_type), (principal, host, operation, permission) = random_binding(random)
    of_pattern = ResourcePatternFilter(
        random.choice([ResourceType.ANY, kind]),
        random.choice([None, name, "abc"]),
        random.choice([PatternType.ANY, PatternType.MATCH, pattern_type]),
    )
    of_entry = AccessControlEntryFilter(
        random.choice([None, principal]),
        random.choice([None, host]),
        random.choice([AclOperation.ANY, operation]),
        random.choice([AclPermissionType.ANY, permission]),
    )
    return AclBindingFilter(of_pattern, of_entry)


def test_the_first_filter_that_matches_is_that_of_a_search() -> None:
    random = Random(7)
    found = set()
    for _ in range(100):
        bindings = {random_binding(random) for _ in range(6)}
        filters = [random_filter(random) for _ in range(4)]
        index = FilterIndex()
        for number, acl_filter in enumerate(filters):
            index.add(number, acl_filter)
        of_patterns: dict[ResourcePattern, list[EntryFilters]] = {}
        for match in index.matches(list({one.pattern for one in bindings})):
            if match is not None:
                of_patterns.setdefault(match[0], []).append(match[1])
        for pattern, entry in bindings:
            expected = next(
                (
                    number
                    for number, (of_pattern, of_entry) in enumerate(filters)
                    if of_pattern.matches(pattern) and of_entry.matches(entry)
                ),
                None,
            )
            of_entries = run_through(merged(of_patterns.get(pattern, [])))
            assert first_match(of_entries, entry) == expected
            found.add(expected)
    assert found == {None, 0, 1, 2, 3}


def test_a_pattern_that_a_filter_names_need_not_be_stored_here() -> None:
    """Another broker may have stored it a moment ago."""
    index = FilterIndex()
    anything = AccessControlEntryFilter(None, None, AclOperation.ANY, AclPermissionType.ANY)
    index.add(0, AclBindingFilter(ResourcePatternFilter(ResourceType.TOPIC, "t", LITERAL), anything))
    assert list(index.matches([])) == [(ResourcePattern(ResourceType.TOPIC, "t", LITERAL), {anything: 0})]
