"""Makes the archive of classes that Spark's JVMs of the tests share: `python -m tests.support.spark.shared_classes`.

A session does what most tests do. When its JVM ends, it writes the classes that it has loaded in the form in which JVMs
map them into memory. The archive is used only with the same jars and JDK; without it everything runs, only slower.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.admin import Admin
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.spark.jvm import CLASSES
from tests.support.spark.pieces import Outgoing, kafka_batch, kafka_stream, local_session, quick_conf, received, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = "spark.driver.defaultJavaOptions"


def work(spark: SparkSession, bootstrap: str, directory: Path) -> None:
    """Read and write by the batch, in a stream and with a shuffle."""
    from pyspark.sql import functions as F

    topic, other = (Admin(bootstrap).create_topic(name, 2) for name in ("read", "written"))
    send(bootstrap, topic, (Outgoing(key=b"%d" % (n % 3), value=b"%d" % n, partition=n % 2) for n in range(20)))
    records = kafka_batch(spark, bootstrap, subscribe=topic, includeHeaders="true").load()
    received(records)
    counts = records.groupBy("partition").agg(F.count("*").alias("count"), F.max("offset").alias("last"))
    counts.join(records.withColumn("text", F.col("value").cast("string")), "partition").orderBy("offset").collect()
    sink = {"kafka.bootstrap.servers": bootstrap, "topic": other}
    records.select("key", "value").write.format("kafka").options(**sink).save()

    rows, checkpoint = str(directory / "rows"), str(directory / "checkpoint")
    stream = kafka_stream(spark, bootstrap, subscribe=topic, startingOffsets="earliest").load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(rows).awaitTermination()
    spark.read.parquet(rows).select(F.from_json(F.col("value").cast("string"), "user STRING")).collect()


def main() -> None:
    CLASSES.unlink(missing_ok=True)
    made = CLASSES.with_suffix(".new")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        conf = quick_conf(directory)
        conf[OPTIONS] += f" -XX:ArchiveClassesAtExit={made}"
        with (
            running(OdradekBroker(directory / "broker")) as broker,
            local_session("classes", directory, conf) as session,
        ):
            work(session, broker.bootstrap, directory)
    made.replace(CLASSES)


if __name__ == "__main__":
    main()
