"""Segmented logs in Apache Kafka's file formats. Synchronous throughout."""
