"""Fuzzes one target with Atheris: `python -m tests.support.fuzzing TARGET SECONDS DIRECTORY`.

The coverage of odradek's code guides it, and of the decoders that are generated at run time. It begins with the seeds
and the corpus of the tests. An input that raises an undeclared error, takes longer than a second or more than 512 MB
ends the process with an error status and is left in the directory.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["odradek"]):
    from odradek.protocol.codec import codec
    from tests.support.fuzzing.targets import TARGETS, run

from tests.support.fuzzing.corpus import corpus

INPUT_BYTES_MAX = 65_536
SECONDS_OF_AN_INPUT_MAX = 1
MEMORY_MB_MAX = 512

_compile = codec._compile
codec._compile = lambda *arguments: atheris.instrument_func(_compile(*arguments))  # type: ignore[assignment]


def main(name: str, seconds: int, directory: Path) -> None:
    logging.disable()
    found = directory / name
    found.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(corpus(name)):
        (found / f"seed-{number}").write_bytes(data)
    target = TARGETS[name]
    options = (
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={SECONDS_OF_AN_INPUT_MAX}",
        f"-rss_limit_mb={MEMORY_MB_MAX}",
        f"-artifact_prefix={directory}/{name}-",
        "-print_final_stats=1",
        "-verbosity=0",
        str(found),
    )
    atheris.Setup([sys.argv[0], *options], lambda data: run(target, data))
    atheris.Fuzz()


main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
