"""`odradek dump-log`: the files of a log as text."""
