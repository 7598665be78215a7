"""The elements of large messages are freed some at a time."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, cast

from odradek.protocol.codec.codec import ELEMENTS_FREED_AT_ONCE, elements_in_steps, let_go
from odradek.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from odradek.timer.sliced_work import run_through

if TYPE_CHECKING:
    from odradek.protocol.messages.alter_configs import AlterableConfig

COUNT = 3 * ELEMENTS_FREED_AT_ONCE


class Element:
    """In place of a config: unlike one, it can be watched."""


def request() -> AlterConfigsRequest:
    configs = cast("list[AlterableConfig]", [Element() for _ in range(COUNT)])
    return AlterConfigsRequest(resources=[AlterConfigsResource(configs=configs)])


def test_short_arrays_are_left_out() -> None:
    made = request()
    assert run_through(elements_in_steps(made)) == [made.resources[0].configs]


def test_arrays_that_are_still_in_use_stay_as_they_are() -> None:
    made = request()
    elements = run_through(elements_in_steps(made))
    run_through(let_go(elements))
    assert len(made.resources[0].configs) == COUNT
    assert elements == [[]]


def test_what_nobody_uses_is_freed_in_steps() -> None:
    made = request()
    known = [weakref.ref(config) for config in made.resources[0].configs]
    elements = run_through(elements_in_steps(made))
    gc.disable()
    try:
        del made
        alive = [sum(1 for config in known if config() is not None) for _ in let_go(elements)]
    finally:
        gc.enable()
    assert alive == [COUNT - ELEMENTS_FREED_AT_ONCE, COUNT - 2 * ELEMENTS_FREED_AT_ONCE, 0]
