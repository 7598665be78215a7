"""Regular expressions that operators write."""

from __future__ import annotations

import re


def compile_expression(text: str) -> re.Pattern[str]:
    r"""The expression. Its classes, such as `\w`, are those of ASCII, as in Java.

    Raises: ValueError for a text that cannot be compiled. Beside its own error, `re` raises OverflowError for a number
    of repetitions of ten digits, and RecursionError for some thousand parentheses.
    """
    try:
        return re.compile(text, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
