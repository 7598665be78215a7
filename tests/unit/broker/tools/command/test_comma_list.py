from __future__ import annotations

import pytest

from odradek.broker.tools.command.comma_list import integers


def test_numbers() -> None:
    assert integers("0,1,") == [0, 1]
    assert integers("2:-1:", ":") == [2, -1]
    for text in ("0,x", "0,,1", ""):
        with pytest.raises(ValueError, match="invalid literal"):
            integers(text)
