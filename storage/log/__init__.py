"""One log: appends, watermarks, truncation, retention, leader epochs."""
