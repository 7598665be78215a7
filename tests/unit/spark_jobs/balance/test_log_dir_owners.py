from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.balance.log_dir_owners import Owner, check_cluster, owners
from spark_jobs.common.job import JobError


def log_dir(parent: Path, name: str, text: str) -> str:
    (parent / name).mkdir()
    (parent / name / "meta.properties").write_text(text)
    return str(parent / name)


def test_each_directory_is_of_a_broker(tmp_path: Path) -> None:
    one = log_dir(tmp_path, "one", "broker.id=1\ncluster.id=abc\nversion=0\n")
    two = log_dir(tmp_path, "two", "broker.id=2\ncluster.id=abc\n")
    found = owners(f"{one}, {two}")
    assert found == {one: Owner(broker_id=1, cluster_id="abc"), two: Owner(broker_id=2, cluster_id="abc")}
    check_cluster(found, "abc", "host:1")
    check_cluster(found, None, "host:1")
    with pytest.raises(JobError, match=r"one belongs to the cluster abc, and host:1 to xyz$"):
        check_cluster(found, "xyz", "host:1")


@pytest.mark.parametrize("text", ["cluster.id=abc\n", "broker.id=one\n"])
def test_a_directory_that_names_no_broker(tmp_path: Path, text: str) -> None:
    with pytest.raises(JobError, match=r"meta\.properties names no broker\.id$"):
        owners(log_dir(tmp_path, "one", text))


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"meta\.properties cannot be read: No such file"):
        owners(str(tmp_path))


def test_directories_of_two_clusters(tmp_path: Path) -> None:
    one = log_dir(tmp_path, "one", "broker.id=1\ncluster.id=abc\n")
    two = log_dir(tmp_path, "two", "broker.id=1\ncluster.id=xyz\n")
    with pytest.raises(JobError, match="belong to several clusters: abc, xyz"):
        owners(f"{one},{two}")
