"""Spark jobs over the topics of a Kafka cluster: one job per file, a `main()` and a pure transform.

They are run from the checkout, `python -m spark_jobs.archive_topic`, and are no part of the wheel.
"""
