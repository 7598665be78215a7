from __future__ import annotations

import pytest

from odradek.controller.tree.metadata_tree import BadArguments, CreateMode, check_path, parent_path


@pytest.mark.parametrize(("path", "parent"), [("/a", "/"), ("/a/b", "/a"), ("/a/b.c/d", "/a/b.c")])
def test_parent_path(path: str, parent: str) -> None:
    assert parent_path(path) == parent


GOOD_PATHS = ["/", "/a", "/a/b-c_d.e", "/a/<default>", "/a/with space", "/ä", "/.a", "/a/...", "/a../b."]


@pytest.mark.parametrize("path", GOOD_PATHS)
def test_good_paths(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "Path length must be > 0"),
        ("a", "Path must start with / character"),
        ("/a/", "Path must not end with / character"),
        ("//", "Path must not end with / character"),
        ("/a//b/..", 'Invalid path string "/a//b/.." caused by empty node name specified @3'),
        ("/.", 'Invalid path string "/." caused by relative paths not allowed @1'),
        ("/a/..", 'Invalid path string "/a/.." caused by relative paths not allowed @4'),
        ("/a/../b", 'Invalid path string "/a/../b" caused by relative paths not allowed @4'),
        ("/a\0b", 'Invalid path string "/a\0b" caused by null character not allowed @2'),
        ("/a/..\n", 'Invalid path string "/a/..\n" caused by invalid character @5'),
    ],
)
def test_bad_paths(path: str, message: str) -> None:
    """The messages are those of `PathUtils.validatePath`."""
    with pytest.raises(BadArguments) as refused:
        check_path(path)
    assert str(refused.value) == message


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
