"""Where the connector comes from: the order of the sources, and one line for each thing that is wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.common import connector
from spark_jobs.common.connector import (
    POM,
    REDACTED,
    SetupError,
    artifacts_of,
    children_ignoring_sigterm,
    connector_options,
    first_line,
)

ARTIFACTS = artifacts_of(POM)
JARS = [
    "spark-sql-kafka-0-10_2.13-4.0.0.jar",
    "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "kafka-clients-3.9.0.jar",
    "commons-pool2-2.12.0.jar",
]


def fill(folder: Path, names: list[str]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in names]
    for path in paths:
        path.touch()
    return paths


def spark_jars(paths: list[Path]) -> dict[str, str]:
    return {"spark.jars": ",".join(map(str, paths))}


class FakeMaven:
    """Stands for the process that Maven is: puts the jars where it is told, or fails."""

    def __init__(self, status: int = 0, output: str = "") -> None:
        self.calls: list[list[str]] = []
        self._status = status
        self._output = output

    def __call__(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.calls.append(command)
        if self._status == 0:
            options = dict(word.removeprefix("-D").split("=", 1) for word in command if word.startswith("-D"))
            fill(Path(options["outputDirectory"]), JARS)
        return subprocess.CompletedProcess(command, self._status, stdout=self._output, stderr="")


@pytest.fixture
def path_with_maven(tmp_path: Path) -> Iterator[str]:
    (maven,) = fill(tmp_path / "bin", ["mvn"])
    maven.chmod(0o755)
    return str(maven.parent)


def test_the_pom_names_the_four_jars_and_nothing_else() -> None:
    assert [artifact.jar for artifact in ARTIFACTS] == JARS
    assert ARTIFACTS[0].coordinate == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"


def test_every_dependency_of_the_pom_excludes_its_own_dependencies() -> None:
    assert len(re.findall(r"<exclusion><groupId>\*</groupId><artifactId>\*</artifactId>", POM.read_text())) == 4


def test_jars_of_the_checkout_are_used(tmp_path: Path) -> None:
    paths = fill(tmp_path / "jars", JARS)
    assert connector_options({}, tmp_path) == spark_jars(paths)


def test_another_version_in_jars_is_used_where_it_is_the_only_one(tmp_path: Path) -> None:
    paths = fill(tmp_path / "jars", [name.replace("3.9.0", "3.9.1") for name in JARS])
    assert connector_options({}, tmp_path) == spark_jars(paths)


def test_the_version_of_the_pom_is_preferred(tmp_path: Path) -> None:
    paths = fill(tmp_path / "jars", JARS)
    fill(tmp_path / "jars", ["kafka-clients-3.9.1.jar", "kafka-clients-3.9.1-test.jar"])
    assert connector_options({}, tmp_path) == spark_jars(paths)


def test_the_variable_names_files_and_folders(tmp_path: Path) -> None:
    fill(tmp_path / "jars", JARS)
    folder = fill(tmp_path / "folder", JARS)
    (single,) = fill(tmp_path, ["assembly.jar"])
    for separator in ",:":
        named = separator.join([str(single), str(tmp_path / "folder")])
        assert connector_options({"SPARK_KAFKA_JARS": named}, tmp_path) == spark_jars([single, *folder])


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("{0}/none.jar", "SPARK_KAFKA_JARS: there is no {0}/none.jar"),
        ("{0}/some", "SPARK_KAFKA_JARS: the folder {0}/some lacks kafka-clients-3.9.0.jar, commons-pool2-2.12.0.jar"),
        (" , ", "SPARK_KAFKA_JARS is set and names no jar"),
    ],
)
def test_a_variable_that_is_wrong_is_refused(tmp_path: Path, named: str, message: str) -> None:
    fill(tmp_path / "some", JARS[:2])
    with pytest.raises(SetupError) as refused:
        connector_options({"SPARK_KAFKA_JARS": named.format(tmp_path)}, tmp_path)
    assert str(refused.value) == message.format(tmp_path)


def test_maven_fetches_the_jars_once(tmp_path: Path, path_with_maven: str, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = FakeMaven()
    monkeypatch.setattr(subprocess, "run", maven)
    fill(tmp_path / "jars", JARS[:3])  # not the whole connector

    first = connector_options({"PATH": path_with_maven}, tmp_path)
    second = connector_options({"PATH": path_with_maven}, tmp_path)

    assert first == second == spark_jars([tmp_path / ".cache" / "spark" / "jars" / name for name in JARS])
    assert len(maven.calls) == 1
    assert f"-Dmaven.repo.local={tmp_path}/.cache/m2" in maven.calls[0]
    assert connector_options({"PATH": ""}, tmp_path) == first


def test_a_jar_of_another_version_that_was_fetched_earlier_is_fetched_again(
    tmp_path: Path, path_with_maven: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", FakeMaven())
    fill(tmp_path / ".cache" / "spark" / "jars", [*JARS[:3], "commons-pool2-2.11.1.jar"])

    connector_options({"PATH": path_with_maven}, tmp_path)

    assert sorted(path.name for path in (tmp_path / ".cache" / "spark" / "jars").iterdir()) == sorted(JARS)


def test_an_error_of_maven_is_reported_in_one_line(
    tmp_path: Path, path_with_maven: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = "[ERROR] Could not transfer artifact x\n[ERROR] \n[ERROR] Re-run Maven\n"
    monkeypatch.setattr(subprocess, "run", FakeMaven(1, output))

    with pytest.raises(SetupError) as refused:
        connector_options({"PATH": path_with_maven}, tmp_path)

    assert str(refused.value) == (
        "Maven could not fetch Spark's Kafka connector: Could not transfer artifact x; "
        "put the four jars of pom.xml into jars/ or name them in SPARK_KAFKA_JARS"
    )
    assert not (tmp_path / ".cache" / "spark" / "jars").exists()


def test_without_maven_spark_resolves_the_connector(tmp_path: Path) -> None:
    assert connector_options({"PATH": str(tmp_path)}, tmp_path) == {
        "spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0,"
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0,"
        "org.apache.kafka:kafka-clients:3.9.0,org.apache.commons:commons-pool2:2.12.0"
    }


def test_main_prints_the_jars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(connector, "connector_options", lambda: {"spark.jars": "/a.jar,/b.jar"})
    assert connector.main() == 0
    assert capsys.readouterr().out == "/a.jar\n/b.jar\n"


def test_main_prints_the_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SPARK_KAFKA_JARS", "/no/such.jar")
    assert connector.main() == 1
    assert capsys.readouterr().err == "connector: error: SPARK_KAFKA_JARS: there is no /no/such.jar\n"


def test_java_must_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"Spark needs Java 17 or 21"):
        connector.spark_session("test")


def test_pyspark_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/somewhere")
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    with pytest.raises(SetupError, match=r"pip install 'pyspark==4\.0\.0'"):
        connector.spark_session("test")


def test_a_sigterm_during_the_start_of_a_child_is_handled_after_it() -> None:
    taken: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: taken.append(number))
    try:
        with children_ignoring_sigterm():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)  # no other thread of the tests may take it
            assert taken == []
        assert taken == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_first_line_is_the_first_that_is_not_empty() -> None:
    assert first_line("\n  a\nb") == "a"
    assert first_line("\n") == "no reason given"


@pytest.mark.parametrize(
    "key",
    [
        "kafka.sasl.jaas.config",
        "kafka.sasl.oauthbearer.client.secret",
        "kafka.ssl.key.password",
        "kafka.ssl.keystore.key",
        "kafka.ssl.keystore.certificate.chain",
        "kafka.ssl.keystore.password",
        "kafka.ssl.truststore.certificates",
        "kafka.ssl.truststore.password",
        "spark.hadoop.fs.s3a.access.key",
    ],
)
def test_values_of_keys_that_hold_secrets_are_redacted(key: str) -> None:
    assert re.search(REDACTED, key)


def test_other_options_are_shown() -> None:
    shown = ("kafka.bootstrap.servers", "kafka.ssl.keystore.location", "kafka.security.protocol", "subscribe", "topic")
    assert not [key for key in shown if re.search(REDACTED, key)]


def test_workers_on_this_machine_are_this_python_and_find_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    connector._prepare_local_workers()
    connector._prepare_local_workers()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["PYTHONPATH"] == f"{connector.CHECKOUT}{os.pathsep}/somewhere"
