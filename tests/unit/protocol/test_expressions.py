from __future__ import annotations

import pytest

from odradek.protocol.expressions import compile_expression


def test_classes_are_those_of_ascii() -> None:
    assert compile_expression(r"\w+-\d").fullmatch("orders-1")
    assert not compile_expression(r"\w").fullmatch("ä")
    assert not compile_expression(r"\d").fullmatch("٣")


@pytest.mark.parametrize("text", ["[", "a{9999999999}", "(" * 5_000 + ")" * 5_000, "(?u)a"])
def test_what_cannot_be_compiled(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        compile_expression(text)
