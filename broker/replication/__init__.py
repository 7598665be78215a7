"""Copies of logs: followers fetch from their leaders, and moves copy a log to another log directory."""
