"""A naive authorizer: it goes through all bindings for each question. And random bindings and questions for it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from odradek.broker.security.authorizer.acl_cache import AclCache, VersionedAcls
from odradek.controller.model.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)

PRINCIPALS = ("User:a", "User:b", "User:*", "Group:a")
HOSTS = ("10.0.0.1", "10.0.0.2", "::1")
NAMES = ("a", "ab", "abc", "abd", "b", "bc", "ä", "*")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
CASES_OF_ONE_STATE = 25
BINDINGS_MAX = 16
OPERATIONS = tuple(operation for operation in AclOperation if operation > AclOperation.ANY)
DENY, ALLOW = AclPermissionType.DENY, AclPermissionType.ALLOW

IMPLYING = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


class Question(NamedTuple):
    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str


def random_binding(random: Random) -> AclBinding:
    pattern_type = random.choice((PatternType.LITERAL, PatternType.PREFIXED))
    pattern = ResourcePattern(random.choice(TYPES[:2]), random.choice(NAMES), pattern_type)
    operation = random.choice((*OPERATIONS[:6], AclOperation.ALL, AclOperation.ALTER_CONFIGS))
    permission = DENY if random.random() < 0.2 else ALLOW
    return AclBinding(
        pattern, AccessControlEntry(random.choice(PRINCIPALS), random.choice((*HOSTS[:2], "*")), operation, permission)
    )


def random_question(random: Random) -> Question:
    return Question(
        random.choice(PRINCIPALS[:2] + PRINCIPALS[3:]),
        random.choice(HOSTS),
        random.choice(OPERATIONS),
        random.choice(TYPES),
        random.choice((*NAMES[:-1], "abcdef", "c")),
    )


def is_allowed(bindings: Iterable[AclBinding], question: Question, *, by_default: bool) -> bool:
    """Kafka's documentation, sentence by sentence."""
    of_resource = [binding.entry for binding in bindings if _concerns(binding.pattern, question)]
    if not of_resource:
        return by_default
    of_client = [entry for entry in of_resource if _is_about(entry, question)]
    asked = (question.operation, AclOperation.ALL)
    if any(entry.permission_type is DENY and entry.operation in asked for entry in of_client):
        return False
    sufficient = (*asked, *IMPLYING.get(question.operation, ()))
    return any(entry.permission_type is ALLOW and entry.operation in sufficient for entry in of_client)


def is_allowed_for_some(bindings: Iterable[AclBinding], question: Question, *, by_default: bool) -> bool:
    """Whether a resource of the type can be thought of that only matching allowing entries are about."""
    relevant = [
        binding
        for binding in bindings
        if binding.pattern.resource_type is question.resource_type
        and _is_about(binding.entry, question)
        and binding.entry.operation in (question.operation, AclOperation.ALL)
    ]
    denied = [binding.pattern for binding in relevant if binding.entry.permission_type is DENY]
    if any(pattern.name == "*" and pattern.pattern_type is PatternType.LITERAL for pattern in denied):
        return False
    if by_default:
        return True
    for pattern in (binding.pattern for binding in relevant if binding.entry.permission_type is ALLOW):
        is_literal = pattern.pattern_type is PatternType.LITERAL
        if is_literal and pattern.name == "*":
            return True
        hidden = [
            other
            for other in denied
            if (is_literal and other == pattern)
            or (other.pattern_type is PatternType.PREFIXED and pattern.name.startswith(other.name))
        ]
        if not hidden:
            return True
    return False


def _concerns(pattern: ResourcePattern, question: Question) -> bool:
    if pattern.resource_type is not question.resource_type:
        return False
    if pattern.pattern_type is PatternType.PREFIXED:
        return question.name.startswith(pattern.name)
    return pattern.name in ("*", question.name)


def _is_about(entry: AccessControlEntry, question: Question) -> bool:
    return entry.principal in ("User:*", question.principal) and entry.host in ("*", question.host)


def change_one(
    random: Random, cache: AclCache, bindings: set[AclBinding]
) -> tuple[ResourcePattern, frozenset[AccessControlEntry]]:
    """Add or remove a random binding; the changed pattern with its entries."""
    if random.random() < len(bindings) / BINDINGS_MAX:
        changed = random.choice(sorted(bindings))
        bindings.remove(changed)
    else:
        changed = random_binding(random)
        bindings.add(changed)
    entries = frozenset(one.entry for one in bindings if one.pattern == changed.pattern)
    cache.update(changed.pattern, VersionedAcls(entries, 0))
    return changed.pattern, entries


def compare_with_the_model(random: Random, cases: int) -> set[bool]:
    """Change the ACLs of one cache again and again, and ask after each change; the answers that were seen."""
    cache, bindings, seen = AclCache(), set[AclBinding](), set[bool]()
    for _ in range(cases // CASES_OF_ONE_STATE):
        change_one(random, cache, bindings)
        for _ in range(CASES_OF_ONE_STATE):
            question, by_default = random_question(random), random.random() < 0.5
            found = cache.is_allowed(*question)
            expected = is_allowed(bindings, question, by_default=by_default)
            assert (by_default if found is None else found) == expected, (question, bindings)
            some = cache.is_allowed_for_some(*question[:4], by_default=by_default)
            assert some == is_allowed_for_some(bindings, question, by_default=by_default), (question, bindings)
            seen |= {expected, some}
        assert cache.count == len(bindings)
    return seen
