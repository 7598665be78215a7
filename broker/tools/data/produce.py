"""`odradek produce`: writes the lines of standard input or of files to a topic.

Kafka: ConsoleProducer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.client.interrupts import Interrupted
from odradek.broker.tools.data.client.properties import PRODUCER_KEYS
from odradek.broker.tools.data.client.running import STDIN, STDOUT, run_with_client
from odradek.broker.tools.data.client.streams import InputStream, OutputStream
from odradek.broker.tools.data.produce_options import (
    line_format,
    parse_produce,
    produce_parser,
    producer_config,
    producer_settings,
)
from odradek.broker.tools.data.producer.partitioner import PARTITIONERS, random_below
from odradek.broker.tools.data.producer.producer import Producer, ProducerConfig
from odradek.broker.tools.data.records.record_reader import (
    MAX_RECORD_BYTES,
    InputRecord,
    MalformedRecord,
    RecordReader,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.client.interrupts import Interrupts
    from odradek.protocol.records.record import Headers

CLIENT_ID: Final = "console-producer"


def main(arguments: Sequence[str]) -> int:
    """Write records. Returns the exit status."""
    options = parse_produce(arguments)

    def make_work() -> tuple[_Work, Mapping[str, str]]:
        settings = producer_settings(options)
        return _Work(options, producer_config(settings), _InputRecords(options)), settings

    return run_with_client(make_work, options.bootstrap_server, client_id=CLIENT_ID, also=PRODUCER_KEYS)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    return produce_parser()


class _InputRecords:
    """Pieces of input to records, with what the options say of all of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Raises: CommandFailed."""
        self._options = options
        self._headers: Headers = tuple(_header(text) for text in options.headers)
        self._parse = _json_parser() if options.json else line_format(options).record

    def of_file(self, value: bytes) -> Iterator[InputRecord]:
        """The record whose value is a whole file."""
        yield self._completed(InputRecord(None, value))

    def reader(self) -> RecordReader:
        """A reader for another input."""
        return RecordReader(lambda piece, number: self._completed(self._parse(piece, number)), self._options.delimiter)

    def _completed(self, record: InputRecord) -> InputRecord:
        options = self._options
        partition = record.partition if options.keep_partitions else options.partition
        return record._replace(
            key=os.fsencode(options.key) if options.key is not None else record.key,
            headers=record.headers + self._headers,
            partition=None if partition is not None and partition < 0 else partition,
            timestamp=record.timestamp if options.timestamp is None else options.timestamp,
            topic=options.topic or record.topic,
        )


class _Work:
    """Reads, sends, and ends the transactions."""

    def __init__(self, options: argparse.Namespace, config: ProducerConfig, records: _InputRecords) -> None:
        self._options = options
        self._config = config
        self._records = records
        self._left: int | None = options.count
        self._in_transaction = 0
        """Records of the open transaction."""

    async def __call__(self, client: DataClient, interrupts: Interrupts) -> None:
        producer = Producer(client, self._config, PARTITIONERS[self._options.partitioner](random_below))
        try:
            await interrupts.during(producer.start())
            try:
                await interrupts.during(self._send_all(producer))
                await interrupts.during(self._end(producer))
            except (Interrupted, CommandFailed, OSError):
                await self._give_up(producer)
                raise
        finally:
            await producer.close()
            if self._options.verbose:
                sys.stderr.write(f"{producer.acknowledged} record(s) written\n")

    async def _send_all(self, producer: Producer) -> None:
        for name in self._options.files or ["-"]:
            if self._left == 0:
                return
            try:
                async with aclosing(self._pieces(name)) as pieces:
                    async for records in pieces:
                        await self._send(producer, records)
                        if self._left == 0:
                            break  # the input may never end
            except MalformedRecord as error:
                raise CommandFailed(str(error)) from None
            if self._options.transaction_per_file:
                await self._commit(producer)

    async def _pieces(self, name: str) -> AsyncGenerator[Iterable[InputRecord], None]:
        """The records of a file or of standard input, piece by piece."""
        descriptor = STDIN if name == "-" else os.open(name, os.O_RDONLY)
        try:
            source = InputStream(descriptor)
            tee = OutputStream(STDOUT) if self._options.tee else None
            reader = self._records.reader()
            whole = bytearray()
            self._prompt(descriptor)
            while data := await source.read():
                if tee is not None:
                    await tee.write(data)
                if self._options.whole_file:
                    whole += data
                    if len(whole) > MAX_RECORD_BYTES:
                        raise MalformedRecord(f"{name} has more than {MAX_RECORD_BYTES} bytes")
                else:
                    yield reader.feed(data)
                    self._prompt(descriptor)
            yield self._records.of_file(bytes(whole)) if self._options.whole_file else reader.finish()
        finally:
            if descriptor != STDIN:
                os.close(descriptor)

    @staticmethod
    def _prompt(descriptor: int) -> None:
        if os.isatty(descriptor) and os.isatty(STDOUT):
            os.write(STDOUT, b">")

    async def _send(self, producer: Producer, records: Iterable[InputRecord]) -> None:
        for record in records:
            if self._left is not None:
                if not self._left:
                    return
                self._left -= 1
            if record.topic is None:
                raise CommandFailed("a record names no topic, and there is no --topic")
            await producer.send(record.topic, record)
            self._in_transaction += 1
            if self._in_transaction == self._options.transaction_size:
                await self._commit(producer)
            elif self._options.sync:
                await producer.flush()

    async def _commit(self, producer: Producer) -> None:
        await producer.commit()
        self._in_transaction = 0

    async def _end(self, producer: Producer) -> None:
        if self._config.transactional_id is not None:
            await self._commit(producer)
        else:
            await producer.flush()

    async def _give_up(self, producer: Producer) -> None:
        """After a signal or an error: abort the transaction; without one, write what was read."""
        if self._config.transactional_id is not None:
            await producer.abort()
        else:
            await producer.flush()


def _json_parser() -> Callable[[bytes, int], InputRecord]:
    from odradek.broker.tools.data.records.json_lines import json_record  # lines without JSON do not pay for it

    return json_record


def _header(text: str) -> tuple[str, bytes | None]:
    name, found, value = text.partition("=")
    return name, os.fsencode(value) if found else None
