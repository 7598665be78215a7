"""The thresholds of glibc's allocator, in a process of their own: they hold until it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from odradek.broker.machine import allocator

COUNT_MAPPED_BLOCKS = """
    import ctypes, sys
    from odradek.broker.machine.allocator import MMAP_THRESHOLD_BYTES, set_thresholds
    from odradek.broker.network.frames.frame_buffers import SHARED_BYTES

    class MallInfo(ctypes.Structure):
        _fields_ = [(name, ctypes.c_int) for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
        )]

    libc = ctypes.CDLL(None)
    libc.mallinfo.restype = MallInfo
    is_set = "set" in sys.argv and set_thresholds()
    bytearray(16 << 20)  # freed at once: glibc raises its own threshold to this size
    before = libc.mallinfo().hblks
    large = bytearray(MMAP_THRESHOLD_BYTES)
    after_large = libc.mallinfo().hblks
    small = bytes(SHARED_BYTES)  # the most that a connection keeps of one read
    print(is_set, after_large - before, libc.mallinfo().hblks - after_large)
"""


def count_mapped_blocks(*arguments: str, **environment: str) -> str:
    """Whether the thresholds are set, and how many pieces of mapped memory a large and a small block need."""
    command = [sys.executable, "-c", textwrap.dedent(COUNT_MAPPED_BLOCKS), *arguments]
    done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def test_a_large_block_is_mapped_even_after_a_larger_one_was_freed() -> None:
    assert count_mapped_blocks("set") == "True 1 0"
    assert count_mapped_blocks() == "False 0 0"


@pytest.mark.parametrize(
    ("name", "value", "mapped"),
    [
        ("MALLOC_MMAP_THRESHOLD_", "33554432", "0 0"),
        ("MALLOC_TRIM_THRESHOLD_", "33554432", "1 1"),  # which sets the other one to 128 KB
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=33554432", "0 0"),
    ],
)
def test_an_allocator_that_the_environment_configures_is_left_as_it_is(name: str, value: str, mapped: str) -> None:
    assert count_mapped_blocks("set", **{name: value}) == f"False {mapped}"


def test_other_allocators_have_no_such_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not allocator.set_thresholds()
