"""A streaming query for tests that kill it: `kafka_log` from the beginning of a topic to Parquet files.

python -m tests.support.spark.log_stream LOG_DIR TOPIC OUTPUT CHECKPOINT SCRATCH
"""

from __future__ import annotations

import sys
from pathlib import Path

from spark_jobs.common.connector import spark_session
from spark_jobs.common.streaming_run import Batch, StopRequest, follow
from spark_jobs.kafka_log import register
from tests.support.spark.pieces import quick_conf


def main() -> None:
    log_dir, topic, output, checkpoint, scratch = sys.argv[1:]
    Path(scratch).mkdir(exist_ok=True)
    spark = spark_session("kafka_log_stream", master="local[2]", conf=quick_conf(Path(scratch)))
    register(spark)
    options = {"topic": topic, "includeHeaders": "true", "startingOffset": "earliest"}
    rows = spark.readStream.format("kafka_log").options(**options).load(log_dir)
    writer = rows.writeStream.format("parquet").option("checkpointLocation", checkpoint)

    def show(batch: Batch) -> None:
        print(f"batch {batch.number}: {batch.records} records", flush=True)

    follow(writer.trigger(processingTime="200 milliseconds").start(output), StopRequest(), show)


if __name__ == "__main__":
    main()
