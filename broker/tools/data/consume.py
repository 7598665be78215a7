"""`odradek consume`: prints records of topics.

Kafka: ConsoleConsumer.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.socket_loop import cancel, spawn
from odradek.broker.tools.command.terminal_text import write
from odradek.broker.tools.data.client.properties import CONSUMER_KEYS
from odradek.broker.tools.data.client.running import STDOUT, run_with_client
from odradek.broker.tools.data.client.streams import OutputStream
from odradek.broker.tools.data.consume_options import (
    consume_parser,
    consumer_config,
    consumer_settings,
    parse_consume,
    record_format,
    subscription,
)
from odradek.broker.tools.data.consumer.consumer import Consumer, ConsumerConfig, Subscription
from odradek.broker.tools.data.records.deserializers import SerializationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.client.interrupts import Interrupts
    from odradek.broker.tools.data.consumer.fetcher import Chunk
    from odradek.broker.tools.data.records.record_format import RecordFormat

T = TypeVar("T")

CLIENT_ID: Final = "console-consumer"
POLL_MS: Final = 1_000
"""Between two looks at the clock for commits and rebalances while no record comes."""


def main(arguments: Sequence[str]) -> int:
    """Print records. Returns the exit status."""
    options = parse_consume(arguments)

    def make_work() -> tuple[_Work, Mapping[str, str]]:
        settings = consumer_settings(options)
        work = _Work(options, consumer_config(settings, options), subscription(options), record_format(options))
        return work, settings

    return run_with_client(make_work, options.bootstrap_server, client_id=CLIENT_ID, also=CONSUMER_KEYS)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    return consume_parser()


class _Work:
    """Polls and prints."""

    def __init__(
        self, options: argparse.Namespace, config: ConsumerConfig, wanted: Subscription, form: RecordFormat
    ) -> None:
        self._options = options
        self._config = config
        self._subscription = wanted
        self._form = form
        self._count = 0

    async def __call__(self, client: DataClient, interrupts: Interrupts) -> None:
        consumer = Consumer(client, self._config, self._subscription)
        try:
            await interrupts.during(self._consume(client, consumer))
        finally:
            await consumer.close()
            if not self._options.quiet:
                sys.stderr.write(f"Processed a total of {self._count} messages\n")

    async def _consume(self, client: DataClient, consumer: Consumer) -> None:
        """Print until the end, or until no record has come for `--timeout-ms` (joining a group counts)."""
        output = OutputStream(STDOUT)
        limit = None if self._options.count == -1 else self._options.count
        timeout_ms = self._options.timeout_ms
        if timeout_ms is not None and timeout_ms < 0:
            timeout_ms = None
        last_ms = client.clock.monotonic_ms()
        with contextlib.suppress(_TooLate):
            await _within(client, timeout_ms, consumer.start())
            while (limit is None or self._count < limit) and not (self._config.ends and consumer.is_finished):
                left_ms = None if timeout_ms is None else last_ms + timeout_ms - client.clock.monotonic_ms()
                poll_ms = POLL_MS if left_ms is None else max(0, min(POLL_MS, left_ms))
                chunk = await _within(client, left_ms, consumer.poll(poll_ms))
                if chunk is not None and chunk.records:
                    last_ms = client.clock.monotonic_ms()
                    await self._print(output, consumer, chunk, None if limit is None else limit - self._count)
                elif chunk is not None:
                    consumer.done(chunk)

    async def _print(self, output: OutputStream, consumer: Consumer, chunk: Chunk, limit: int | None) -> None:
        """Print the records of a chunk, at most `limit` of them. Raises: CommandFailed after those before a bad one."""
        records = chunk.records if limit is None else chunk.records[:limit]
        pieces = []
        for number, found in enumerate(records, 1):
            try:
                pieces.append(self._form(found))
            except SerializationError as error:
                place = f"{found.topic}-{found.partition}, offset {found.record.offset}"
                if not self._options.skip_message_on_error:
                    await output.write(b"".join(pieces))
                    self._count += number  # with the bad one, as Apache counts
                    consumer.done(chunk, found.record.offset)
                    raise CommandFailed(f"{place}: {error}") from None
                write(sys.stderr, f"odradek: warning: {place} is skipped: {error}\n")
        await output.write(b"".join(pieces))
        self._count += len(records)
        is_whole = len(records) == len(chunk.records)
        consumer.done(chunk, None if is_whole else records[-1].record.offset + 1)


class _TooLate(Exception):
    """No record has come for the time of `--timeout-ms`."""


async def _within(client: DataClient, timeout_ms: int | None, work: Coroutine[object, None, T]) -> T:
    """The result of `work`, which is cancelled after the time, if there is a limit. Raises: _TooLate."""
    if timeout_ms is None:
        return await work
    task = spawn(work)
    try:
        await client.wait(max(0, timeout_ms), task.ended)
    finally:
        is_late = not task.is_done
        await cancel([task])
    if is_late:
        raise _TooLate
    return task.result()
