"""Spark jobs over the topics of a Kafka cluster: one thin entry per job, and a room with its parts.

They are run from the checkout, `python -m spark_jobs.archive_topic`, and are no part of the wheel.
"""
