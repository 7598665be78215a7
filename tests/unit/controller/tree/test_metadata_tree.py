from __future__ import annotations

import pytest

from odradek.controller.tree.metadata_tree import BadArguments, CreateMode, check_path, parent_path


@pytest.mark.parametrize(("path", "parent"), [("/a", "/"), ("/a/b", "/a"), ("/a/b.c/d", "/a/b.c")])
def test_parent_path(path: str, parent: str) -> None:
    assert parent_path(path) == parent


@pytest.mark.parametrize("path", ["/", "/a", "/a/b-c_d.e", "/a/<default>", "/a/with space", "/ä"])
def test_good_paths(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize("path", ["", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a\n"])
def test_bad_paths(path: str) -> None:
    with pytest.raises(BadArguments):
        check_path(path)


def test_a_sequential_path_may_end_with_a_slash() -> None:
    check_path("/a/", is_sequential=True)


def test_modes() -> None:
    assert [mode.is_ephemeral for mode in CreateMode] == [False, True, False, True]
    assert [mode.is_sequential for mode in CreateMode] == [False, False, True, True]
