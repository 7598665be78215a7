from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.produce_options import (
    line_format,
    parse_produce,
    producer_config,
    producer_settings,
)
from odradek.broker.tools.data.producer.producer import ProducerConfig
from odradek.broker.tools.data.records.record_reader import LineFormat
from odradek.protocol.records.compression import CompressionType


def config(*arguments: str) -> ProducerConfig:
    return producer_config(producer_settings(parse_produce(["-t", "t", *arguments])))


def test_defaults() -> None:
    found = config()
    assert (found.acks, found.enable_idempotence, found.linger_ms, found.batch_size) == (-1, True, 5, 131_072)


def test_a_batch_does_not_expire_while_it_lingers() -> None:
    assert config("--linger", "90000").delivery_timeout_ms == 120_000
    assert config("--linger", "90001").delivery_timeout_ms == 120_001
    assert config("--linger", "5", "--delivery-timeout-ms", "30005").delivery_timeout_ms == 30_005
    forever = config("--linger", "9223372036854775807", "--delivery-timeout-ms", "2147483647")
    assert (forever.linger_ms, forever.delivery_timeout_ms) == (2**31 - 1, 2**31 - 1)
    with pytest.raises(CommandFailed) as refused:
        config("--linger", "5", "--delivery-timeout-ms", "30004")
    assert str(refused.value) == (
        "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms"
    )


def test_options_of_both_tools_mean_the_same() -> None:
    apaches = config(
        "--compression-codec", "lz4", "--request-required-acks", "1", "--timeout", "9", "--max-partition-memory-bytes",
        "77", "--max-memory-bytes", "88", "--producer-property", "delivery.timeout.ms=39000",
    )  # fmt: skip
    kcats = config(
        "-z", "lz4", "-X", "acks=1", "--linger", "9", "--batch-size", "77", "-X", "buffer.memory=88",
        "--delivery-timeout-ms", "39000",
    )  # fmt: skip
    assert apaches == kcats
    assert (kcats.acks, kcats.compression_type, kcats.linger_ms) == (1, CompressionType.LZ4, 9)


def test_an_option_comes_before_a_property() -> None:
    assert config("-X", "linger.ms=1", "--linger", "2").linger_ms == 2
    assert config("--producer-property", "linger.ms=1").linger_ms == 1


def test_compression() -> None:
    assert config("-z").compression_type == CompressionType.GZIP
    found = config("-z", "zstd", "--compression-level", "9")
    assert (found.compression_type, found.compression_level) == (CompressionType.ZSTD, 9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--transactional-id", "x", "--acks", "1"),
            "Cannot set a transactional.id without also enabling idempotence.",
        ),
        (
            ("--transactional-id", "x", "-X", "enable.idempotence=false"),
            "Cannot set a transactional.id without also enabling idempotence.",
        ),
        (
            ("-X", "enable.idempotence=true", "--acks", "1"),
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence.",
        ),
    ],
)
def test_transactions_need_idempotence_and_idempotence_needs_acks_of_all(
    arguments: tuple[str, ...], message: str
) -> None:
    assert config("--transactional-id", "x", "-X", "enable.idempotence=true").transactional_id == "x"
    assert config("--acks", "1").acks == 1, "idempotence is given up if nobody asked for it"
    with pytest.raises(CommandFailed) as refused:
        config(*arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-t", "t", "--whole-file"],
        ["-t", "t", "--transaction-size", "5"],
        ["-t", "t", "-D", ""],
        ["-t", "t", "-z", "brotli"],
    ],
)
def test_options_that_do_not_go_together(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse_produce(arguments)


def form(*arguments: str) -> LineFormat:
    return line_format(parse_produce(["-t", "t", *arguments]))


def test_lines() -> None:
    assert form() == LineFormat()
    assert form("-K", r"\t") == LineFormat(parse_key=True, key_separator=b"\t", ignore_error=True)
    assert form("--property", "parse.key=true", "--property", "key.separator= ", "-Z") == LineFormat(
        parse_key=True, key_separator=b" ", empty_is_null=True
    )
    with pytest.raises(CommandFailed, match=r"parse.value is not known"):
        form("--property", "parse.value=true")
    with pytest.raises(CommandFailed, match="may not be equal"):
        form("--property", "headers.delimiter=,")
