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


@pytest.mark.parametrize("character", ["\x20", "\xa0", "\u200b", "\u3000", "\ud7ff", "\uf900", "\uffef"])
def test_characters_that_zookeeper_accepts(character: str) -> None:
    check_path(f"/a{character}b")


@pytest.mark.parametrize("character", ["\0", "\x1f", "\x7f", "\x9f", "\ud800", "\uf8ff", "\ufff0", "\U0001f600"])
def test_characters_that_zookeeper_refuses(character: str) -> None:
    with pytest.raises(BadArguments):
        check_path(f"/a{character}b")


def test_a_sequential_path_may_end_with_a_slash() -> None:
    check_path("/a/", is_sequential=True)


def test_modes() -> None:
    assert [mode.is_ephemeral for mode in CreateMode] == [False, True, False, True]
    assert [mode.is_sequential for mode in CreateMode] == [False, False, True, True]
