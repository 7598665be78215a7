"""Finds Spark's Kafka connector, and makes the session that every job runs in.

The connector is four jars, named with their versions in `pom.xml` beside this file. The first that applies:

1. `SPARK_KAFKA_JARS`: jars, or folders that hold the four, separated by commas or colons;
2. `jars/` in the checkout, if it holds the four;
3. Maven, once, into `.cache/spark/jars` (`python -m spark_jobs.common.connector` does just that, and prints them);
4. `spark.jars.packages`: Spark resolves them itself when the session starts, with all they depend on.

Errors are `SetupError`s with a message of one line.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from spark_jobs.common.code_archive import CHECKOUT, send_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POM = Path(__file__).with_name("pom.xml")
LOG4J = Path(__file__).with_name("log4j2.properties")
JARS_VARIABLE = "SPARK_KAFKA_JARS"
FETCHED = Path(".cache") / "spark" / "jars"
MAVEN_TIMEOUT_S = 600
DEFAULT_LOG_LEVEL = "FATAL"
REDACTED = (
    r"(?i)secret|password|passphrase|token|access[.]?key|sasl\.jaas|ssl\.(key|trust)store\.(key|cert)|PRIVATE KEY"
)
"""Spark's default, and the properties of Kafka's clients that hold keys: no plan, log or page shows their values."""


class SetupError(Exception):
    """Spark or its Kafka connector cannot be used; the message is one line and says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One jar of the connector, as Maven names it."""

    group: str
    name: str
    version: str

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def jar(self) -> str:
        return f"{self.name}-{self.version}.jar"

    def find(self, folder: Path) -> Path | None:
        """This jar in `folder`; another version of it if that is the only one there."""
        if (folder / self.jar).is_file():
            return folder / self.jar
        pattern = re.compile(rf"{re.escape(self.name)}-\d[\w.]*\.jar")
        others = [path for path in sorted(folder.glob("*.jar")) if pattern.fullmatch(path.name)]
        return others[0] if len(others) == 1 else None


def connector_options(environment: Mapping[str, str] = os.environ, checkout: Path = CHECKOUT) -> dict[str, str]:
    """Spark's configuration for the connector: either `spark.jars` or `spark.jars.packages`."""
    artifacts = artifacts_of(POM)
    jars = _jars_at_hand(environment, checkout, artifacts)
    if jars is None:
        maven = shutil.which("mvn", path=environment.get("PATH"))
        if maven is None:
            return {"spark.jars.packages": ",".join(artifact.coordinate for artifact in artifacts)}
        jars = _jars_from_maven(maven, checkout, artifacts)
    return {"spark.jars": ",".join(str(jar) for jar in jars)}


def artifacts_of(pom: Path) -> tuple[Artifact, ...]:
    """The dependencies of a pom, in its order."""
    namespace = {"m": "http://maven.apache.org/POM/4.0.0"}

    def text(dependency: ElementTree.Element, tag: str) -> str:
        return dependency.findtext(f"m:{tag}", "", namespace)

    return tuple(
        Artifact(group=text(found, "groupId"), name=text(found, "artifactId"), version=text(found, "version"))
        for found in ElementTree.parse(pom).iterfind("m:dependencies/m:dependency", namespace)
    )


def _jars_at_hand(environment: Mapping[str, str], checkout: Path, artifacts: tuple[Artifact, ...]) -> list[Path] | None:
    """The jars that are already on this machine, or None."""
    named = environment.get(JARS_VARIABLE)
    if named:
        return _named_jars(named, artifacts)
    found = [jar for artifact in artifacts if (jar := artifact.find(checkout / "jars"))]
    if len(found) == len(artifacts):
        return found
    fetched = [checkout / FETCHED / artifact.jar for artifact in artifacts]
    return fetched if all(jar.is_file() for jar in fetched) else None


def _named_jars(named: str, artifacts: tuple[Artifact, ...]) -> list[Path]:
    """The jars that `SPARK_KAFKA_JARS` names: a file is taken as it is, a folder must hold the whole connector."""
    jars: list[Path] = []
    for entry in re.split(r"[,:]", named):
        if not entry.strip():
            continue
        path = Path(entry.strip()).expanduser().absolute()
        if path.is_dir():
            found = {artifact: artifact.find(path) for artifact in artifacts}
            missing = [artifact.jar for artifact, jar in found.items() if jar is None]
            if missing:
                raise SetupError(f"{JARS_VARIABLE}: the folder {path} lacks {', '.join(missing)}")
            jars += [jar for jar in found.values() if jar is not None]
        elif path.is_file():
            jars.append(path)
        else:
            raise SetupError(f"{JARS_VARIABLE}: there is no {path}")
    if not jars:
        raise SetupError(f"{JARS_VARIABLE} is set and names no jar")
    return jars


def _jars_from_maven(maven: str, checkout: Path, artifacts: tuple[Artifact, ...]) -> list[Path]:
    """Let Maven fetch the jars. Their folder is complete or not there, even if this is killed or runs twice."""
    folder = checkout / FETCHED
    jars = [folder / artifact.jar for artifact in artifacts]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all(jar.is_file() for jar in jars):
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".jars-") as scratch:
                _run_maven(maven, Path(scratch) / "jars", checkout / ".cache" / "m2")
                shutil.rmtree(folder, ignore_errors=True)
                (Path(scratch) / "jars").rename(folder)
    return jars


def _run_maven(maven: str, output: Path, repository: Path) -> None:
    """Copy our pom's dependencies. The local repository is our own: a half-filled entry in a shared one breaks it."""
    command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={output}", f"-Dmaven.repo.local={repository}"]
    instead = f"put the four jars of {POM.name} into jars/ or name them in {JARS_VARIABLE}"
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise SetupError(f"Maven did not fetch Spark's Kafka connector in {MAVEN_TIMEOUT_S} s; {instead}") from None
    if done.returncode != 0:
        output_lines = (done.stdout + done.stderr).splitlines()
        errors = [line.removeprefix("[ERROR]").strip() for line in output_lines if line.startswith("[ERROR]")]
        reason = errors[0] if errors else f"exit status {done.returncode}"
        raise SetupError(f"Maven could not fetch Spark's Kafka connector: {reason}; {instead}")


def spark_session(
    app_name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    log_level: str = DEFAULT_LOG_LEVEL,
) -> SparkSession:
    """A session with the Kafka connector, in UTC.

    Under spark-submit the JVM already runs: it has set master and connector (`--packages`, `--jars`).
    """
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise SetupError("Spark needs Java 17 or 21: install a JDK, or set JAVA_HOME")
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SetupError(f"{error}: install pyspark, .venv/bin/pip install 'pyspark==4.0.0'") from None

    builder = SparkSession.builder.appName(app_name)
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.redaction.regex", REDACTED)
    workers_have_code = is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted:
        master = master or "local[*]"
        workers_have_code = re.match(r"local(\[|$)", master) is not None
        if workers_have_code:
            _prepare_local_workers()
        java_options = f"-Dlog4j2.configurationFile={LOG4J.as_uri()} -Dspark.jobs.log.level={log_level}"
        builder = builder.master(master).config("spark.driver.extraJavaOptions", java_options)
        for key, value in connector_options().items():
            builder = builder.config(key, value)
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    if log_level == DEFAULT_LOG_LEVEL:  # PySpark's own account of a failed analysis, JSON with a stack trace in it
        logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        with children_ignoring_sigterm():
            session = builder.getOrCreate()
    except PySparkException as error:
        raise SetupError(f"Spark did not start: {first_line(str(error))}") from None
    if not workers_have_code:
        send_code(session.sparkContext)
    return session


def _prepare_local_workers() -> None:
    """Let Spark's Python workers run with this Python, and find the jobs wherever this process was started."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run the python3 of the PATH
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(CHECKOUT) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CHECKOUT), *paths]))


@contextmanager
def children_ignoring_sigterm() -> Iterator[None]:
    """Let the JVM started inside ignore SIGTERM, as PySpark lets it ignore SIGINT.

    A supervisor signals every process of a job at once. The JVM must survive that, or the batch in flight dies before
    Python can let it finish; it ends when Python does, by the end of its standard input. A SIGTERM that arrives
    meanwhile stays pending (blocked), and what handled it before handles it then.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def first_line(text: str) -> str:
    """The first line of a message that is not empty."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")


def main() -> int:
    """Fetch the connector's jars if they are not here yet, and print where they are."""
    try:
        options = connector_options()
    except SetupError as error:
        print(f"connector: error: {error}", file=sys.stderr)
        return 1
    if "spark.jars.packages" in options:
        print("without Maven, Spark fetches these when a job starts:", file=sys.stderr)
    for value in options.values():
        print(value.replace(",", "\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
