"""Requests about groups and transactional ids, sent to their coordinators: many keys in a request, all brokers at once;
or sent to every broker, about all that it coordinates.

A coordinator that moves or loads its partition is asked again until `default.api.timeout.ms` has passed.

Kafka: AdminApiDriver, CoordinatorStrategy, AllBrokersStrategy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.broker.tools.command.failures import CommandFailed, check, error_text
from odradek.broker.tools.command.socket_loop import gather
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient


class KeyType(IntEnum):
    """What a coordinator is for, with the numbers of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class Answered(Protocol):
    """What a coordinator answers about a key."""

    @property
    def error_code(self) -> int: ...


AnsweredT = TypeVar("AnsweredT", bound=Answered)
Ask = Callable[[int, Sequence[str]], Awaitable[Mapping[str, AnsweredT]]]
"""Asks a broker about keys; the answer by key."""

_TRIED_AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
_NAMES: Final = {KeyType.GROUP: "group", KeyType.TRANSACTION: "transactional id"}


async def ask_coordinators(
    client: AdminClient, key_type: KeyType, keys: Iterable[str], ask: Ask[AnsweredT]
) -> dict[str, AnsweredT]:
    """The answer about each key, also one with an error. Raises: CommandFailed if a coordinator does not answer."""
    answers: dict[str, AnsweredT] = {}
    pending = list(dict.fromkeys(keys))
    reason = ""
    if not pending:
        return answers
    async for _ in client.attempts():
        brokers, reason = await find_coordinators(client, key_type, pending)
        by_broker: dict[int, list[str]] = {}
        for key, broker_id in brokers.items():
            by_broker.setdefault(broker_id, []).append(key)
        asked = [_ask_broker(ask, broker_id, those) for broker_id, those in by_broker.items()]
        for found in await gather(asked):
            if isinstance(found, str):
                reason = found
                continue
            for key, answer in found.items():
                if answer.error_code in _TRIED_AGAIN:
                    reason = error_text(answer.error_code)
                else:
                    answers[key] = answer
        pending = [key for key in pending if key not in answers]
        if not pending:
            return answers
    raise CommandFailed(f"the coordinator of {_NAMES[key_type]} '{pending[0]}' does not answer: {reason}")


async def ask_all_brokers(
    client: AdminClient,
    ask: Callable[[int], Awaitable[AnsweredT]],
    *,
    tried_again: Collection[ErrorCode],
    what: str,
) -> dict[int, AnsweredT]:
    """What each broker that is alive answers, by broker id. Raises: CommandFailed for an error, with `what` before it.

    A broker that answers an error of `tried_again` is asked again until `default.api.timeout.ms` has passed.
    """
    answers: dict[int, AnsweredT] = {}
    pending = await client.broker_ids()
    async for _ in client.attempts():
        for broker_id in pending:
            answers[broker_id] = await ask(broker_id)
        pending = [broker_id for broker_id in pending if answers[broker_id].error_code in tried_again]
        for broker_id, answer in answers.items():
            if broker_id not in pending:
                check(answer.error_code, None, f"{what} {broker_id}")
        if not pending:
            return answers
    raise CommandFailed(f"{what} {pending[0]}: {error_text(answers[pending[0]].error_code)}")


async def _ask_broker(ask: Ask[AnsweredT], broker_id: int, keys: Sequence[str]) -> Mapping[str, AnsweredT] | str:
    """The answers, or why there are none."""
    try:
        return await ask(broker_id, keys)
    except VersionMismatch:
        raise
    except OSError as error:
        return str(error)


async def find_coordinators(client: AdminClient, key_type: KeyType, keys: Sequence[str]) -> tuple[dict[str, int], str]:
    """The broker of each key whose coordinator is there, and why one is not. Raises: CommandFailed."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    brokers: dict[str, int] = {}
    reason = ""
    for found in (await client.ask(request, FindCoordinatorResponse)).coordinators:
        if found.error_code == ErrorCode.NONE:
            brokers[found.key] = found.node_id
        elif found.error_code in _TRIED_AGAIN:
            reason = error_text(found.error_code, found.error_message)
        else:
            why = error_text(found.error_code, found.error_message)
            raise CommandFailed(f"the coordinator of {_NAMES[key_type]} '{found.key}': {why}")
    return brokers, reason
