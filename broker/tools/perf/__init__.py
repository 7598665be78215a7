"""`odradek perf`: throughput and latency, with the options and lines of Apache's tools."""
