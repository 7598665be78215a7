from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.verification.log_directory import NothingToVerifyError, verify
from tests.support.disks.damaged_logs import (
    CLEAN_DIRECTORY,
    LOG,
    Damage,
    append,
    copy_of_clean,
    findings_in,
    overwrite,
    replace,
)


@pytest.mark.parametrize("name", ["clean", "killed", "internal_topics"])
def test_nothing_is_wrong_with_what_apache_has_written(name: str) -> None:
    assert findings_in(CLEAN_DIRECTORY.parent / name) == []


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "open"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (replace("meta.properties", "version=0", "version=2"), "meta.properties: unknown version 2"),
        (replace("meta.properties", "broker.id=0", "broker.id=x"), "meta.properties: broker.id 'x' is no number"),
        (replace("meta.properties", "broker.id=0\n", ""), "meta.properties: broker.id is missing"),
        (replace("meta.properties", "cluster.id", "cluster"), "meta.properties: cluster.id is missing"),
        (overwrite("meta.properties", 0, b"\\u"), "meta.properties: Malformed"),
        (append("cleaner-offset-checkpoint", b"1"), "cleaner-offset-checkpoint: Expected 0 entries in checkpoint file"),
        (overwrite("replication-offset-checkpoint", 0, b"7"), "replication-offset-checkpoint: Unrecognized version"),
        (lambda directory: (directory / "lost+found").mkdir(), "lost+found: the name is not <topic>-<partition>"),
        (append(f"{LOG}/notes.txt", b"x"), f"{LOG}/notes.txt: the name is not one of a log's files"),
        (append(f"{LOG}/{7:020d}.timeindex", b""), f"{LOG}/{7:020d}.timeindex: an index without a log"),
    ],
)
def test_damage_is_found_in_any_state(tmp_path: Path, damage: Damage, said: str, is_clean: bool) -> None:
    directory = copy_of_clean(tmp_path / "data", is_clean=is_clean)
    damage(directory)
    found = findings_in(directory)
    assert len(found) == 1, found
    assert found[0].startswith(said)


def test_leftovers_of_a_cleaning_are_damage_only_after_a_clean_stop(tmp_path: Path) -> None:
    directory = copy_of_clean(tmp_path / "data", is_clean=False)
    for suffix in (".cleaned", ".swap", ".deleted"):
        append(f"{LOG}/{37:020d}.log{suffix}", b"x")(directory)
    append(f"{LOG}/leader-epoch-checkpoint.tmp", b"x")(directory)
    assert findings_in(directory) == []
    (directory / ".kafka_cleanshutdown").touch()
    assert [line.partition(": ")[0] for line in findings_in(directory)] == [
        f"{LOG}/{37:020d}.log{suffix}" for suffix in (".cleaned", ".swap")
    ]


def test_directories_that_are_no_logs_or_none_any_more(tmp_path: Path) -> None:
    directory = copy_of_clean(tmp_path / "data")
    mark = "0" * 32
    shutil.copytree(directory / LOG, directory / f"moving-1.{mark}-future")
    for name in (f"gone-0.{mark}-delete", f"odd-0.{mark}-stray", "__cluster_metadata-0", "remote-log-index-cache"):
        (directory / name).mkdir()
        append(f"{name}/{0:020d}.log", b"nonsense that nobody looks at")(directory)
    assert findings_in(directory) == []
    append(f"moving-1.{mark}-future/{0:020d}.log", b"?")(directory)
    assert len(findings_in(directory)) == 1


def test_a_partition_by_itself_is_judged_by_the_directory_around_it(tmp_path: Path) -> None:
    directory = copy_of_clean(tmp_path / "data")
    replace("recovery-point-offset-checkpoint", "139", "140")(directory)
    assert findings_in(directory / LOG) == [
        f"{directory}/recovery-point-offset-checkpoint: {LOG}: offset 140 lies after the log end 139"
    ]
    assert verify(str(directory / LOG), list[object]().append) == [TopicPartition("captured", 0)]


def test_the_partitions_are_returned(tmp_path: Path) -> None:
    names = [str(found) for found in verify(str(CLEAN_DIRECTORY.parent / "internal_topics"), list[object]().append)]
    assert names[:2] == ["__consumer_offsets-0", "__transaction_state-0"]
    assert len(names) == 8


def test_what_holds_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingToVerifyError, match="neither a log directory nor"):
        verify(str(tmp_path), list[object]().append)
    shutil.copytree(CLEAN_DIRECTORY / LOG, tmp_path / "copy")
    with pytest.raises(NothingToVerifyError, match="its name is not <topic>-<partition>"):
        verify(str(tmp_path / "copy"), list[object]().append)
