"""Validation of records before they are appended: batches, timestamps, old formats."""
