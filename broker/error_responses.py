"""The error response of any API: the same code for everything that the request names.

A response with one error code carries the code there. A response with one code per entity lists every entity of the
request with the code: the table below says which array of the request becomes which array of the response. An API that
needs more (Produce with acks=0, sentinel offsets) has its own `error_response` beside its handler.

Kafka: AbstractRequest.getErrorResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode
from odradek.protocol.made_once import FEW, made_once
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from odradek.protocol.codec.schema import Field, Request, Response, Struct

_CODES: Final = ("error_code", "partition_error_code")
"""The names of the fields with an error code. AddPartitionsToTxn has the second one."""

ITSELF: Final = ""
"""Stands for an element that is a plain value: an id, an index."""


@dataclass(frozen=True, slots=True)
class Entities:
    """The elements of the request's array `of` reappear in the response's array `into`, with the fields `named`."""

    of: str
    into: str
    named: Mapping[str, str] = field(default_factory=dict)
    """Response field -> request field."""
    parts: Entities | None = None
    """The inner array, whose elements carry the code; None if the element itself carries it."""
    is_all: bool = True
    """Nothing is added to the elements of the response afterwards, so that equal ones may be one object."""


def _named(*names: str, **renamed: str) -> dict[str, str]:
    return {**{name: name for name in names}, **renamed}


_INDEXES = _named(partition_index=ITSELF)
_RESOURCES = _named("resource_type", "resource_name")

_WITHOUT_MESSAGE: Final = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE})
"""Responses whose error message Kafka leaves null when it refuses the whole request."""

_WITH_DEFAULT_MESSAGE: Final = frozenset({ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CLIENT_QUOTAS})
"""Responses whose error message is always that of the code, and never the reason."""

_ANSWERED_BY_THE_CONTROLLER: Final = frozenset(
    {ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.UPDATE_FEATURES}
)
"""A broker that is not the controller says so once, with the message of the code, and names nothing of the request.
Kafka: KafkaApis.handleAlterPartitionReassignmentsRequest, where the controller's answer is an ApiError.
"""

ENTITIES: Final[Mapping[ApiKey, tuple[Entities, ...]]] = {
    ApiKey.OFFSET_FETCH: (Entities("groups", "groups", _named("group_id")),),
    ApiKey.DESCRIBE_GROUPS: (Entities("groups", "groups", _named(group_id=ITSELF)),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Entities(
            "v3_and_below_topics",
            "results_by_topic_v3_and_below",
            _named("name"),
            Entities("partitions", "results_by_partition", _INDEXES),
        ),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        Entities("topics", "topics", _named("name"), Entities("partitions", "partitions", _named("partition_index"))),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        Entities(
            "markers",
            "markers",
            _named("producer_id"),
            Entities("topics", "topics", _named("name"), Entities("partition_indexes", "partitions", _INDEXES)),
        ),
    ),
    ApiKey.CREATE_ACLS: (Entities("creations", "results"),),
    ApiKey.DELETE_ACLS: (Entities("filters", "filter_results"),),
    ApiKey.DESCRIBE_CONFIGS: (Entities("resources", "results", _RESOURCES),),
    ApiKey.ALTER_CONFIGS: (Entities("resources", "responses", _RESOURCES),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Entities("resources", "responses", _RESOURCES),),
    ApiKey.DELETE_GROUPS: (Entities("groups_names", "results", _named(group_id=ITSELF)),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        Entities(
            "topics", "responses", _named("name"), Entities("partitions", "partitions", _named("partition_index"))
        ),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (
        Entities("topics", "topics", _named("name"), Entities("partition_indexes", "partitions", _INDEXES)),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: (Entities("entries", "entries", is_all=False),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        Entities("deletions", "results", _named(user="name")),
        Entities("upsertions", "results", _named(user="name")),
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Entities("users", "results"),),
    ApiKey.DESCRIBE_PRODUCERS: (
        Entities("topics", "topics", _named("name"), Entities("partition_indexes", "partitions", _INDEXES)),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Entities("transactional_ids", "transaction_states", _named(transactional_id=ITSELF)),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Entities("group_ids", "groups", _named(group_id=ITSELF)),),
}


def error_response(
    key: ApiKey, response_type: type[Response], request: Request, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, Response]:
    """The response to `request` in which nothing succeeded, made in steps."""
    response = response_type()
    names_nothing = code == ErrorCode.NOT_CONTROLLER and key in _ANSWERED_BY_THE_CONTROLLER
    if key in _WITHOUT_MESSAGE:
        message = None
    elif key in _WITH_DEFAULT_MESSAGE or names_nothing:
        message = DEFAULT_MESSAGES[code]
    _set_error(response, version, code, message)
    if names_nothing:
        return response
    sentinels = _SENTINELS.get(key)
    for entities in ENTITIES.get(key, ()):
        if not _declared(response, entities).versions.covers(version):
            continue
        items = getattr(request, entities.of) or ()
        if sentinels is None and len(items) > FEW:  # nothing looks at the elements before they are encoded
            setattr(response, entities.into, Mapped(_failing(response, entities, version, code, message), items))
        else:
            yield from _fail_each(items, response, entities, version, code, message)
    yield from (sentinels or _no_sentinels)(request, response, version)
    return response


def _set_error(target: Struct, version: int, code: ErrorCode, message: str | None) -> bool:
    has_code = False
    for declared in target.FIELDS:
        if declared.name in _CODES and declared.versions.covers(version):
            setattr(target, declared.name, code)
            has_code = True
        elif declared.name == "error_message" and declared.versions.covers(version):
            target.error_message = message  # type: ignore[attr-defined]
    return has_code


def _declared(target: Struct, entities: Entities) -> Field:
    return next(candidate for candidate in target.FIELDS if candidate.name == entities.into)


def _fail_each(
    items: Sequence[object], target: Struct, entities: Entities, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, None]:
    results = getattr(target, entities.into)
    if entities.parts is None:
        element = _failed_element(target, entities, version, code, message)
        make = made_once(element, len(items) if entities.is_all else 0)
        for item in items:
            results.append(make(*_repeated(entities, item)))
            yield
    else:
        failing = _failing(target, entities, version, code, message)
        for item in items:
            results.append(failing(item))
            yield


def _failing(
    target: Struct, entities: Entities, version: int, code: ErrorCode, message: str | None
) -> Callable[[object], Struct]:
    """Makes the element of the response for an element of the request, with its parts."""
    make = _failed_element(target, entities, version, code, message)
    parts = entities.parts

    def failing(item: object) -> Struct:
        result = make(*_repeated(entities, item))
        if parts is not None and (inner := getattr(item, parts.of)):
            make_part = _failing(result, parts, version, code, message)
            setattr(result, parts.into, Mapped(make_part, inner) if len(inner) > FEW else list(map(make_part, inner)))
        return result

    return failing


def _failed_element(
    target: Struct, entities: Entities, version: int, code: ErrorCode, message: str | None
) -> Callable[..., Struct]:
    """Makes an element without parts from the values that it repeats."""
    element_type = cast("type[Struct]", _declared(target, entities).element)

    def failed(*values: object) -> Struct:
        result = element_type()
        for into, value in zip(entities.named, values, strict=True):
            setattr(result, into, value)
        if entities.parts is None:
            _set_error(result, version, code, message)
        return result

    return failed


def _repeated(entities: Entities, item: object) -> list[object]:
    return [item if of == ITSELF else getattr(item, of) for of in entities.named.values()]


def _no_sentinels(request: Request, response: Response, version: int) -> Generator[None, None, None]:
    yield


def _join_group(request: Request, response: Response, version: int) -> Generator[None, None, None]:
    yield
    response.generation_id = -1  # type: ignore[attr-defined]
    response.protocol_name = None if version >= 7 else ""  # type: ignore[attr-defined]


def _init_producer_id(request: Request, response: Response, version: int) -> Generator[None, None, None]:
    yield
    response.producer_id = response.producer_epoch = -1  # type: ignore[attr-defined]


def _describe_client_quotas(request: Request, response: Response, version: int) -> Generator[None, None, None]:
    yield
    response.entries = None  # type: ignore[attr-defined]


def _alter_client_quotas(request: Request, response: Response, version: int) -> Generator[None, None, None]:
    from odradek.protocol.messages.alter_client_quotas import EntityData

    for entry, result in zip(request.entries, response.entries, strict=True):  # type: ignore[attr-defined]
        result.entity = yield from listed(
            EntityData(entity_type=entity.entity_type, entity_name=entity.entity_name) for entity in entry.entity
        )
        yield


def _alter_user_scram_credentials(request: Request, response: Response, version: int) -> Generator[None, None, None]:
    """Each user once, in order."""
    by_name = {}
    for result in response.results:  # type: ignore[attr-defined]
        by_name[result.user] = result
        yield
    response.results = yield from listed(by_name[user] for user in sorted(by_name))  # type: ignore[attr-defined]


_SENTINELS: Final = {
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
}
"""The other fields that Kafka sets in an error response, where the schema's default differs."""
