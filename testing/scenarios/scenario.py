"""A failure for a block of a test: rules and the state of the disk, begun and ended together."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, cast

from odradek.testing.async_faults import AsyncFault
from odradek.testing.errors import BrokerStopped
from odradek.testing.fault_checks import checked
from odradek.testing.faults import Fault
from odradek.testing.node.questions import scenario_questions  # noqa: F401 - registers its questions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from types import TracebackType

    Disk = Mapping[str, object]

FaultT = TypeVar("FaultT")


class Asked(Protocol):
    """A `Broker` or an `AsyncBroker`."""

    def ask(self, name: str, /, **arguments: object) -> object: ...


class Scenario:
    """`with` for a `Broker`, `async with` for an `AsyncBroker`. After the block its faults can still be asked."""

    def __init__(
        self, broker: Asked, rules: Sequence[dict[str, object]] = (), *, full: bool = False, sync_ms: int = 0
    ) -> None:
        """Raises: RuleError."""
        self._ask = broker.ask
        self._rules = [checked(plain) for plain in rules]
        self._disk: Disk = {"is_full": full, "sync_ms": sync_ms}
        self._numbers: list[int] = []
        self.faults: list[Fault] = []
        """Of a scenario for a `Broker`."""
        self.async_faults: list[AsyncFault] = []
        """Of a scenario for an `AsyncBroker`."""

    def __enter__(self) -> Self:
        self._numbers = cast("list[int]", self._ask("add_faults", rules=[plain for plain, _ in self._rules]))
        self._ask("set_disk", **self._disk)  # after what may be refused
        self.faults = self._made(Fault)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(BrokerStopped):  # the block has stopped it, or it has failed
            self._ask("set_disk", is_full=False, sync_ms=0)
            self._ask("remove_faults", numbers=self._numbers)

    async def __aenter__(self) -> Self:
        added = self._ask("add_faults", rules=[plain for plain, _ in self._rules])
        self._numbers = await cast("Awaitable[list[int]]", added)
        await cast("Awaitable[object]", self._ask("set_disk", **self._disk))
        self.async_faults = self._made(AsyncFault)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(BrokerStopped):
            await cast("Awaitable[object]", self._ask("set_disk", is_full=False, sync_ms=0))
            await cast("Awaitable[object]", self._ask("remove_faults", numbers=self._numbers))

    def assert_called(self) -> None:
        """Raises: AssertionError if one of the faults has changed no request."""
        for fault in self.faults:
            fault.assert_called()

    async def assert_called_async(self) -> None:
        """The same for an `AsyncBroker`."""
        for fault in self.async_faults:
            await fault.assert_called()

    def _made(self, kind: Callable[..., FaultT]) -> list[FaultT]:
        return [kind(self._ask, number, name) for number, (_, name) in zip(self._numbers, self._rules, strict=True)]
