from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.broker.tools.command.socket_loop import spawn, turn
from odradek.broker.tools.data.client.streams import InputStream, OutputStream
from tests.support.virtual_test import loop_test


@loop_test
async def test_a_pipe_is_read_while_the_loop_goes_on() -> None:
    reader, writer = os.pipe()
    task = spawn(InputStream(reader).read())
    await turn()
    assert not task.is_done
    os.write(writer, b"abc")
    await task.ended.wait()
    assert task.result() == b"abc"
    os.close(writer)
    assert await InputStream(reader).read() == b""
    os.close(reader)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"x" * 100_000)

    @loop_test
    async def run() -> None:
        descriptor = os.open(path, os.O_RDONLY)
        stream = InputStream(descriptor)
        sizes = [len(await stream.read()) for _ in range(3)]
        assert sizes == [65536, 34464, 0]
        os.close(descriptor)

    run()


@loop_test
async def test_dev_null_is_at_its_end() -> None:
    descriptor = os.open(os.devnull, os.O_RDWR)
    assert await InputStream(descriptor).read() == b""
    await OutputStream(descriptor).write(b"x" * 10_000)
    os.close(descriptor)


@loop_test
async def test_a_full_pipe_is_waited_for_while_the_loop_goes_on() -> None:
    reader, writer = os.pipe()
    data = os.urandom(300_000)
    task = spawn(OutputStream(writer).write(data))
    received = b""
    while len(received) < len(data):
        await turn()
        received += os.read(reader, 10_000)
    await task.ended.wait()
    task.result()
    assert received == data
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        await OutputStream(writer).write(b"x")
    os.close(writer)


def test_a_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "output"

    @loop_test
    async def run() -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        await OutputStream(descriptor).write(b"x" * 3_000_000)
        os.close(descriptor)

    run()
    assert path.stat().st_size == 3_000_000


@loop_test
async def test_a_pipe_that_does_not_block_is_no_error() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    task = spawn(OutputStream(writer).write(b"x" * 200_000))
    received = 0
    while received < 200_000:
        received += len(await InputStream(reader).read())
    await task.ended.wait()
    task.result()
    os.close(reader)
    os.close(writer)
