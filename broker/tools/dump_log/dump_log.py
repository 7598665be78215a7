"""`odradek dump-log`: prints the files of a log, line for line as Apache Kafka's kafka-dump-log does.

Options and output are those of kafka.tools.DumpLogSegments; findings go to stderr after the last file. Exit status 0 if
everything could be read, with or without findings. If something cannot be read, the lines before it are printed, then
one line on stderr (Apache: a stack trace), and the exit status is 1.

Differences: decoders are known by the names of Kafka's classes and no class is loaded; metadata records of KRaft and of
tiered storage are refused by name; a file name without a dot is an unknown file (Apache ends with an exception); a
missing index is an error and is not created; a truncated snapshot has another error message; text is UTF-8 in every
locale.

Kafka: DumpLogSegments.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.help_format import HelpFormat
from odradek.broker.tools.command.output import Form, Output
from odradek.broker.tools.command.terminal_text import write
from odradek.broker.tools.dump_log import index_dump, record_decoders
from odradek.broker.tools.dump_log.index_dump import CorruptIndexError, IndexDumpOptions, TimeIndexErrors
from odradek.broker.tools.dump_log.java_text import absolute_path, file_path
from odradek.broker.tools.dump_log.log_dump import (
    ALL_BYTES,
    KRAFT_SNAPSHOT_SUFFIX,
    LOG_SUFFIX,
    LogDumpOptions,
    OffsetPairs,
    dump_log,
)
from odradek.broker.tools.dump_log.record_decoders import STRING_DECODER, RecordDecodingError
from odradek.broker.tools.dump_log.rows import JsonRows, TextRows
from odradek.broker.tools.hash_order import order_of_names
from odradek.protocol.errors import KafkaError
from odradek.protocol.java_split import java_split
from odradek.storage.log_files import (
    INDEX_FILE_SUFFIX,
    SNAPSHOT_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.broker.tools.dump_log.record_decoders import BytesDecoder, RecordDecoder

    Write = Callable[[str], object]

EXIT_FAILED: Final = 1


def main(arguments: Sequence[str]) -> int:
    """Print the files. Returns the exit status."""
    options = parser().parse_args(arguments)
    refused = next((name for name in REFUSED_DECODERS if getattr(options, name)), None)
    if refused is not None:
        sys.stderr.write(f"odradek: --{refused.replace('_', '-')}: {REFUSED_DECODERS[refused]}\n")
        return EXIT_FAILED
    output = Output(Form.JSON if options.json else Form.LINES)
    rows = JsonRows(output) if options.json else TextRows(partial(write, sys.stdout))
    dump = _Dump(options, rows, partial(write, sys.stderr))
    try:
        try:
            for name in java_split(options.files):
                dump.file(file_path(name))
            sys.stdout.flush()
            dump.print_findings()
        finally:
            output.close()
    except BrokenPipeError:
        raise
    except (OSError, ValueError, KafkaError, CorruptIndexError, RecordDecodingError) as error:
        write(sys.stderr, f"odradek: {error}\n")
        return EXIT_FAILED
    return 0


REFUSED_DECODERS: Final = {
    "cluster_metadata_decoder": "records of KRaft's metadata log are not decoded; a ZooKeeper-mode broker has none",
    "remote_log_metadata_decoder": "records of tiered storage are not decoded; this broker has none",
}


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="odradek dump-log",
        description="Print log files and indexes, useful for debugging a seemingly corrupt log segment.",
        formatter_class=HelpFormat,
    )
    add = parser.add_argument
    add("--files", required=True, metavar="file1,file2,...", help="the data and index files, separated by commas")
    add("--print-data-log", action="store_true", help="print the records; set by any decoder option")
    add("--deep-iteration", action="store_true", help="read the records of the batches; set by --print-data-log")
    add("--index-sanity-check", action="store_true", help="only check an index as a start of the broker does")
    add("--verify-index-only", action="store_true", help="compare an index with its log without printing it")
    add("--max-message-size", type=int, default=IndexDumpOptions().max_message_size, metavar="BYTES")
    add("--max-bytes", type=int, default=ALL_BYTES, metavar="BYTES", help="how much of a .log file is read")
    for part in ("value", "key"):
        add(
            f"--{part}-decoder-class",
            nargs="?",
            const=STRING_DECODER,
            type=_decoder_name,
            metavar="CLASS",
            help=f"decoder of Kafka's own for each {part}: String (the default), Long, Integer or DefaultDecoder",
        )
    add("--offsets-decoder", action="store_true", help="records of __consumer_offsets")
    add("--transaction-log-decoder", action="store_true", help="records of __transaction_state")
    add("--cluster-metadata-decoder", action="store_true", help="refused")
    add("--remote-log-metadata-decoder", action="store_true", help="refused")
    add("--json", action="store_true", help="print an array with an object for each line, findings included")
    add("--skip-record-metadata", action="store_true", help="print only the contents of each record")
    return parser


def _decoder_name(text: str) -> str:
    if text not in record_decoders.BYTES_DECODERS and text not in record_decoders.DEPRECATED_DECODERS:
        raise argparse.ArgumentTypeError(f"{text} is no decoder of Kafka's own, and no class is loaded")
    return text


class _Dump:
    """Prints the files one after the other, and the findings at the end."""

    def __init__(self, options: argparse.Namespace, rows: JsonRows | TextRows, complain: Write) -> None:
        self._options = options
        self._rows = rows
        self._write = rows.write
        self._complain = complain
        self._index_options = IndexDumpOptions(
            options.index_sanity_check, options.verify_index_only, options.max_message_size
        )
        self._index_mismatches: dict[str, list[tuple[int, int]]] = {}
        self._time_errors = TimeIndexErrors()
        self._non_consecutive: dict[str, OffsetPairs] = {}

    def file(self, path: str) -> None:
        if isinstance(self._rows, JsonRows):
            self._rows.file = path
        self._write(f"Dumping {path}\n")
        suffix = os.path.splitext("x" + os.path.basename(path))[1]
        if suffix in (LOG_SUFFIX, KRAFT_SNAPSHOT_SUFFIX):
            pairs = dump_log(path, self._log_options(), self._rows)
            if pairs:
                self._non_consecutive[absolute_path(path)] = pairs
        elif suffix == INDEX_FILE_SUFFIX:
            mismatches = index_dump.dump_index(path, self._index_options, self._rows)
            if mismatches:
                self._index_mismatches[absolute_path(path)] = mismatches
        elif suffix == TIME_INDEX_FILE_SUFFIX:
            index_dump.dump_time_index(path, self._index_options, self._rows, self._time_errors)
        elif suffix == SNAPSHOT_FILE_SUFFIX:
            index_dump.dump_snapshot(path, self._rows, self._complain)
        elif suffix == TXN_INDEX_FILE_SUFFIX:
            index_dump.dump_txn_index(path, self._rows)
        else:
            self._complain(f"Ignoring unknown file {path}\n")

    def _log_options(self) -> LogDumpOptions:
        options = self._options
        prints = any(
            (
                options.print_data_log,
                options.offsets_decoder,
                options.transaction_log_decoder,
                options.value_decoder_class is not None,
                options.key_decoder_class is not None,
            )
        )
        return LogDumpOptions(
            decoder=self._decoder(),
            is_deep=options.deep_iteration or prints,
            prints_contents=prints,
            prints_metadata=not options.skip_record_metadata,
            max_bytes=options.max_bytes,
        )

    def _decoder(self) -> RecordDecoder:
        if self._options.offsets_decoder or self._options.transaction_log_decoder:
            from odradek.broker.tools.dump_log import coordinator_decoders  # a fifth of the start of the command

            if self._options.offsets_decoder:
                return coordinator_decoders.offsets_decoder
            return coordinator_decoders.transaction_log_decoder
        value = self._bytes_decoder(self._options.value_decoder_class)
        return record_decoders.plain_decoder(self._bytes_decoder(self._options.key_decoder_class), value)

    def _bytes_decoder(self, name: str | None) -> BytesDecoder:
        name = name or STRING_DECODER
        successor = record_decoders.DEPRECATED_DECODERS.get(name)
        if successor is not None:
            self._write(f"{name} is deprecated. Please use {successor} instead\n")
        return record_decoders.BYTES_DECODERS[successor or name]

    def print_findings(self) -> None:
        """Print in Apache's order: by kind, files as in its hash maps, pairs of most kinds newest first."""
        rows = self._rows
        if isinstance(rows, JsonRows):
            for kind, name, first, second in self._findings():
                rows.file = name
                names = _NAMES_OF_FINDINGS[kind]
                rows.row(kind, dict(zip(names, (first, second), strict=True)))
            return
        last = ("", "")
        for kind, name, first, second in self._findings():
            if (kind, name) != last:
                self._complain(_TITLES_OF_FINDINGS[kind].format(name))
                last = kind, name
            self._complain(_LINES_OF_FINDINGS[kind].format(first, second))

    def _findings(self) -> Iterator[tuple[str, str, int, int]]:
        """Kind, path of the file, and the two numbers that do not fit."""
        times = self._time_errors
        for name in order_of_names(self._index_mismatches):
            for pair in reversed(self._index_mismatches[name]):
                yield "indexMismatch", name, *pair
        for kind, found in (
            ("timestampMismatch", times.mismatches),
            ("timestampOutOfOrder", times.out_of_order),
            ("offsetNotFound", times.not_found),
        ):
            for name in order_of_names(found):
                for pair in found[name]:
                    yield kind, name, *pair
        for name in order_of_names(self._non_consecutive):
            for pair in self._non_consecutive[name].newest_first():
                yield "nonConsecutiveOffsets", name, *pair


_TITLES_OF_FINDINGS: Final = {
    "indexMismatch": "Mismatches in :{}\n",
    "timestampMismatch": "Found timestamp mismatch in :{}\n",
    "timestampOutOfOrder": "Found out of order timestamp in :{}\n",
    "offsetNotFound": "The following indexed offsets are not found in the log.\n",
    "nonConsecutiveOffsets": "Non-consecutive offsets in {}\n",
}
_LINES_OF_FINDINGS: Final = {
    "indexMismatch": "  Index offset: {}, log offset: {}\n",
    "timestampMismatch": "  Index timestamp: {}, log timestamp: {}\n",
    "timestampOutOfOrder": "  Index timestamp: {}, Previously indexed timestamp: {}\n",
    "offsetNotFound": "Indexed offset: {}, found log offset: {}\n",
    "nonConsecutiveOffsets": "  {} is followed by {}\n",
}
_NAMES_OF_FINDINGS: Final = {
    "indexMismatch": ("indexOffset", "logOffset"),
    "timestampMismatch": ("indexTimestamp", "logTimestamp"),
    "timestampOutOfOrder": ("indexTimestamp", "previousTimestamp"),
    "offsetNotFound": ("indexOffset", "logOffset"),
    "nonConsecutiveOffsets": ("offset", "nextOffset"),
}
