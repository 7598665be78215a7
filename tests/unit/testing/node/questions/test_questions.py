from __future__ import annotations

import pytest

from odradek.testing.node.questions.questions import QUESTIONS, find, question


def test_a_question_is_found_by_its_name_and_its_module_is_imported_for_it() -> None:
    QUESTIONS.pop("reset", None)
    from odradek.testing.node.questions import lifecycle

    QUESTIONS["reset"] = lifecycle.reset
    assert find("reset") is lifecycle.reset
    assert find("reset", "odradek.testing.node.questions.lifecycle") is lifecycle.reset


def test_an_unknown_question_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"nothing is not a question; .*reset"):
        find("nothing", "odradek.testing.node.questions.lifecycle")


def test_two_modules_cannot_have_one_name() -> None:
    async def reset() -> None: ...

    find("reset", "odradek.testing.node.questions.lifecycle")
    with pytest.raises(ValueError, match="reset is a question of"):
        question(reset)
