"""What a fork does without sockets; `tests/conformance/testing/test_forks.py` has the rest."""

from __future__ import annotations

import os

from odradek.testing.node.forks import nothing_to_stop, release


def test_a_released_descriptor_refers_to_nothing_until_its_owner_closes_it() -> None:
    end, other = os.pipe()
    release([other])
    os.write(other, b"x")
    assert os.read(end, 1) == b"", "nobody else has the writing end"
    os.close(other)
    os.close(end)


def test_there_is_nothing_to_wait_for() -> None:
    assert nothing_to_stop().done()
