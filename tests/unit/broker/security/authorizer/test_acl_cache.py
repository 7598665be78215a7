from __future__ import annotations

from random import Random

import pytest

from odradek.broker.security.authorizer.acl_cache import LOOKED_AT, AclCache, VersionedAcls
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
from tests.support.acls.acl_model import (
    Question,
    is_allowed,
    random_binding,
    random_question,
)

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE


def cache_of(*bindings: AclBinding) -> AclCache:
    cache = AclCache()
    for pattern in {binding.pattern for binding in bindings}:
        put(cache, pattern, {binding.entry for binding in bindings if binding.pattern == pattern})
    return cache


def put(cache: AclCache, pattern: ResourcePattern, entries: set[AccessControlEntry]) -> None:
    cache.update(pattern, VersionedAcls(frozenset(entries), 0))


def binding(
    name: str,
    pattern_type: PatternType = LITERAL,
    operation: AclOperation = READ,
    permission: AclPermissionType = ALLOW,
    principal: str = "User:a",
    host: str = "*",
) -> AclBinding:
    return AclBinding(
        ResourcePattern(TOPIC, name, pattern_type), AccessControlEntry(principal, host, operation, permission)
    )


def test_the_deciding_entry_is_one_after_which_the_model_decides() -> None:
    random = Random(2)
    found = 0
    for _ in range(1000):
        bindings = {random_binding(random) for _ in range(8)}
        cache, question = cache_of(*bindings), random_question(random)
        entry = cache.deciding_entry(*question)
        answer = cache.is_allowed(*question)
        if entry is None:
            assert not answer
            continue
        found += 1
        assert answer == (entry.permission_type is ALLOW)
        matching = {one for one in bindings if one.entry == entry}
        assert is_allowed(matching, question, by_default=False) == answer
    assert found > 20


@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_what_allows_more_allows_to_describe(operation: AclOperation) -> None:
    cache = cache_of(binding("t", operation=operation))
    assert cache.is_allowed("User:a", "h", DESCRIBE, TOPIC, "t")
    denying = cache_of(binding("t", operation=operation, permission=DENY), binding("t", operation=DESCRIBE))
    assert denying.is_allowed("User:a", "h", DESCRIBE, TOPIC, "t"), "a denied operation denies no other one"


def test_an_unknown_operation_of_a_stored_entry_allows_and_denies_nothing() -> None:
    for permission in (ALLOW, DENY):
        cache = cache_of(binding("t", operation=AclOperation.UNKNOWN, permission=permission))
        assert [cache.is_allowed("User:a", "h", asked, TOPIC, "t") for asked in AclOperation if asked] == [False] * 14


def test_an_entry_of_unknown_permission_still_closes_the_resource() -> None:
    cache = cache_of(binding("t", permission=AclPermissionType.UNKNOWN))
    assert cache.is_allowed("User:a", "h", READ, TOPIC, "t") is False
    assert cache.is_allowed("User:a", "h", READ, TOPIC, "u") is None


def test_a_prefix_that_is_gone_matches_no_more() -> None:
    cache = cache_of(binding("ab", PREFIXED), binding("cd", PREFIXED))
    assert cache.is_allowed("User:a", "h", READ, TOPIC, "abc")
    put(cache, ResourcePattern(TOPIC, "ab", PREFIXED), set())
    assert cache.is_allowed("User:a", "h", READ, TOPIC, "abc") is None
    assert cache.is_allowed("User:a", "h", READ, TOPIC, "cde")
    assert cache.get(ResourcePattern(TOPIC, "ab", PREFIXED)) is None
    assert cache.count == 1


def test_bindings_by_filter() -> None:
    everything = (
        binding("ab"), binding("*"), binding("a", PREFIXED), binding("b", PREFIXED), binding("ab", operation=DESCRIBE)
    )  # fmt: skip
    cache = cache_of(*everything)

    def names(name: str | None, pattern_type: PatternType, operation: AclOperation = READ) -> list[str]:
        entry = AccessControlEntryFilter(None, None, operation, AclPermissionType.ANY)
        found = cache.bindings(AclBindingFilter(ResourcePatternFilter(ResourceType.ANY, name, pattern_type), entry))
        return sorted(
            f"{one.pattern.name}{'~' if one.pattern.pattern_type is PREFIXED else ''}"
            for one in found
            if one is not None
        )

    assert names("ab", PatternType.MATCH) == ["*", "ab", "a~"]
    assert names("ab", PatternType.ANY) == ["ab"]
    assert names("a", PREFIXED) == ["a~"]
    assert names(None, LITERAL) == ["*", "ab"]
    assert names("*", PatternType.MATCH) == ["*"]
    assert names(None, PatternType.ANY, AclOperation.ANY) == ["*", "ab", "ab", "a~", "b~"]


def test_bindings_are_those_of_the_moment_while_they_are_looked_at() -> None:
    """DescribeAcls looks at them in steps, and ACLs may change in between."""
    cache = cache_of(*(binding(f"t{number}") for number in range(3)))
    anything = AccessControlEntryFilter(None, None, AclOperation.ANY, AclPermissionType.ANY)
    found = cache.bindings(AclBindingFilter(ResourcePatternFilter(ResourceType.ANY, None, PatternType.ANY), anything))
    seen = {next(found)}
    for number in range(3):
        put(cache, ResourcePattern(TOPIC, f"t{number}", LITERAL), set())
    put(cache, ResourcePattern(TOPIC, "new", LITERAL), {binding("new").entry})
    seen.update(found)
    assert {one.pattern.name for one in seen if one is not None} == {"t0", "t1", "t2"}


def test_a_caller_may_pause_where_many_bindings_do_not_match() -> None:
    """Among patterns, and among the entries of one."""
    names = [binding(f"t{number}") for number in range(LOOKED_AT)]
    principals = [binding("u", principal=f"User:{number}") for number in range(LOOKED_AT)]
    wanted = binding("u", principal="User:wanted")
    cache = cache_of(*names, *principals, wanted)
    entry = AccessControlEntryFilter("User:wanted", None, AclOperation.ANY, AclPermissionType.ANY)
    for of_pattern, pauses in (
        (ResourcePatternFilter(TOPIC, "u", PatternType.MATCH), 2),
        (ResourcePatternFilter(TOPIC, "u", LITERAL), 1),
        (ResourcePatternFilter(TOPIC, "t0", LITERAL), 0),
    ):
        found = list(cache.bindings(AclBindingFilter(of_pattern, entry)))
        assert found.count(None) == pauses
        assert [one for one in found if one is not None] == [wanted] * (pauses > 0)


def test_describe_by_type_counts_only_entries_of_the_operation_itself() -> None:
    """As in Kafka, where AclAuthorizer.authorizeByResourceType knows no implied operations."""
    cache = cache_of(binding("t"))
    assert cache.is_allowed(*Question("User:a", "h", DESCRIBE, TOPIC, "t"))
    assert not cache.is_allowed_for_some("User:a", "h", DESCRIBE, TOPIC, by_default=False)
    assert not cache.is_allowed_for_some("User:a", "h", READ, GROUP, by_default=False)
