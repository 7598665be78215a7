"""A small client for records: a producer, a consumer with groups, and the commands that use them."""
