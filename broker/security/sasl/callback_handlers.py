"""Classes of yours that check the credentials of PLAIN and SCRAM: `sasl.server.callback.handler.class`.

The key has the prefixes of a listener and a mechanism, such as `listener.name.NAME.plain.`; each listener and mechanism
has an object of its own. A method that is `async def` is awaited on the event loop. Another one runs in a thread of the
io pool, and may wait; at most `HANDLER_CALLS_MAX` such calls, with those of SASL clients, run at the same time in a
broker, so that threads are left for the disk. Apache Kafka calls its class in a network thread.

Kafka: AuthenticateCallbackHandler, PlainAuthenticateCallback, ScramCredentialCallback.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast

from odradek.broker.config.python_class import configured_instance, place_of
from odradek.broker.machine.io_pool import run_in_pool
from odradek.broker.security.sasl.ports import HandlerFailed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping

    from odradek.broker.security.sasl.ports import SaslContext
    from odradek.controller.model.scram_credential import ScramCredential
    from odradek.storage.disk.ports import IoPool

logger = logging.getLogger(__name__)

KEY: Final = "sasl.server.callback.handler.class"

ResultT = TypeVar("ResultT")


class CallbackHandler(Protocol):
    """What the classes of all mechanisms have."""

    def configure(self, configs: Mapping[str, str], mechanism: str, jaas_options: Mapping[str, str], /) -> None:
        """Called once, before the listener accepts clients.

        `configs` are the broker's settings as texts; those with the prefix of the listener are there without it, too.
        `jaas_options` are the options in `sasl.jaas.config` of the listener and the mechanism.
        """

    def close(self) -> None:
        """Called once, when the listener is closed."""


class PlainCallbackHandler(CallbackHandler, Protocol):
    """Checks the passwords of PLAIN."""

    def configure(self, configs: Mapping[str, str], mechanism: str, jaas_options: Mapping[str, str], /) -> None: ...

    @abstractmethod
    def verify(self, user: str, password: str, /) -> bool | Awaitable[bool]:
        """Whether it is the password of the user. May be `async`. If it raises, the client is refused."""

    def close(self) -> None: ...


class ScramCallbackHandler(CallbackHandler, Protocol):
    """Has the credentials of SCRAM. Delegation tokens authenticate without it."""

    def configure(self, configs: Mapping[str, str], mechanism: str, jaas_options: Mapping[str, str], /) -> None: ...

    @abstractmethod
    def credential(self, user: str, /) -> ScramCredential | Awaitable[ScramCredential | None] | None:
        """The credential of the user; None if the user is unknown. May be `async`. If it raises, the client is refused.

        `ScramMechanism.credential` (`odradek.controller.model.scram_mechanism`) makes one of a salted password.
        """

    def close(self) -> None: ...


HandlerT = TypeVar("HandlerT", bound=CallbackHandler)


class HandlerMethod(Generic[ResultT]):
    """A method of a class, to be awaited. `slots` limits the calls in threads."""

    def __init__(self, method: Callable[..., object], io_pool: IoPool, slots: asyncio.Semaphore) -> None:
        self._method = method
        self._is_async = iscoroutinefunction(method)
        self._io_pool = io_pool
        self._slots = slots

    async def __call__(self, *arguments: str) -> ResultT:
        """Raises: HandlerFailed."""
        try:
            if self._is_async:
                return await cast("Awaitable[ResultT]", self._method(*arguments))
            call = partial(self._method, *arguments)
            return cast("ResultT", await run_in_pool(self._io_pool, call, self._slots))
        except Exception as error:
            reason = f"{KEY} raised {place_of(error)}"
            logger.warning("A client cannot be authenticated: %s", reason)
            raise HandlerFailed(reason) from error


def load_method(context: SaslContext, protocol: Callable[..., HandlerT], method: str) -> HandlerMethod[ResultT]:
    """The method of the configured class, with a new object of it. Raises: StartupError."""
    path, slots = context.handler_class, context.handler_slots
    assert path is not None, "the caller asks for a class that is configured"
    assert slots is not None, "the context of a listener"

    def configure(handler: HandlerT) -> None:
        handler.configure(dict(context.configs), context.mechanism, dict(context.jaas_entry.options))

    handler = configured_instance(KEY, path, protocol, configure, sync_or_async=(method,))
    context.when_closed(handler.close)
    return HandlerMethod(getattr(handler, method), context.io_pool, slots)
