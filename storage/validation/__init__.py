"""What is looked at in records before they are appended: batches, timestamps, old formats."""
