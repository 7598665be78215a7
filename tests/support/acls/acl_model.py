"""A naive authorizer: it goes through all bindings for each question. And random bindings and questions for it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.authorizer.ports import Action
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
from tests.support.acls.authorizers import brokers, client_of

PRINCIPALS = ("User:a", "User:b", "User:*", "Group:a")
IPV6_HOST = "0:0:0:0:0:0:0:1"
HOSTS = ("10.0.0.1", "10.0.0.2", IPV6_HOST)
"""As Java writes them."""
SUPER_USERS = ((), (), ("User:b",), ("Group:a", "User:c"), ("User:*",))
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
        pattern, AccessControlEntry(random.choice(PRINCIPALS), random.choice((*HOSTS, "*")), operation, permission)
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


class Case(NamedTuple):
    """Questions of one client to an authorizer: some in one call of `authorize`, the first by resource type, too."""

    questions: tuple[Question, ...]
    super_users: tuple[str, ...]
    by_default: bool

    @property
    def asked_host(self) -> str:
        """The address of the client as the socket has it."""
        return {IPV6_HOST: "::1"}.get(self.questions[0].host, self.questions[0].host)


def random_case(random: Random) -> Case:
    first = random_question(random)
    others = [random_question(random)[2:] for _ in range(random.choice((0, 0, 1, 2)))]
    questions = (first, *(Question(first.principal, first.host, *rest) for rest in others))
    return Case(questions, random.choice(SUPER_USERS), random.random() < 0.5)


def expected_answers(bindings: Iterable[AclBinding], case: Case) -> tuple[list[bool], bool]:
    """Of `authorize`, and of `authorizeByResourceType`."""
    if case.questions[0].principal in case.super_users:
        return [True] * len(case.questions), True
    allowed = [is_allowed(bindings, question, by_default=case.by_default) for question in case.questions]
    return allowed, is_allowed_for_some(bindings, case.questions[0], by_default=case.by_default)


def answers_of(authorizer: AclAuthorizer, case: Case) -> tuple[list[bool], bool]:
    """The same of an authorizer, which gets the settings of the case."""
    authorizer.configure(
        {"super.users": ";".join(case.super_users), "allow.everyone.if.no.acl.found": str(case.by_default).lower()}
    )
    first = case.questions[0]
    ctx = client_of(first.principal, case.asked_host)
    allowed = authorizer.authorize(ctx, [Action(*question[2:]) for question in case.questions])
    return allowed, authorizer.authorize_by_resource_type(ctx, first.operation, first.resource_type)


async def change_one(
    random: Random, authorizer: AclAuthorizer, bindings: set[AclBinding]
) -> tuple[ResourcePattern, frozenset[AccessControlEntry]]:
    """Create or delete a random binding; the changed pattern with its entries."""
    if random.random() < len(bindings) / BINDINGS_MAX:
        changed = random.choice(sorted(bindings))
        bindings.remove(changed)
        exactly = AclBindingFilter(ResourcePatternFilter(*changed.pattern), AccessControlEntryFilter(*changed.entry))
        (deleted,) = await authorizer.delete_acls(client_of(), [exactly])
        assert deleted.deleted == ((changed, None),)
    else:
        changed = random_binding(random)
        bindings.add(changed)
        (created,) = await authorizer.create_acls(client_of(), [changed])
        assert created.error is None
    return changed.pattern, frozenset(one.entry for one in bindings if one.pattern == changed.pattern)


async def compare_with_the_model(random: Random, cases: int) -> set[bool]:
    """Change ACLs by the API again and again, and ask after each change; the answers that were seen."""
    bindings, seen, asked = set[AclBinding](), set[bool](), 0
    async with brokers() as cluster:
        authorizer = await cluster.start()
        while asked < cases:
            await change_one(random, authorizer, bindings)
            for _ in range(CASES_OF_ONE_STATE):
                case = random_case(random)
                expected = expected_answers(bindings, case)
                assert answers_of(authorizer, case) == expected, (case, bindings)
                seen |= {*expected[0], expected[1]}
                asked += len(case.questions)
            assert authorizer.acl_count == len(bindings)
    return seen
