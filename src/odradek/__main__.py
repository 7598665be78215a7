"""``python -m odradek`` is the ``odradek`` command."""

from odradek.broker.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
