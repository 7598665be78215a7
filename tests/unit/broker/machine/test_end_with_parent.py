from __future__ import annotations

import signal
import subprocess
import sys

PROGRAM = """\
from odradek.broker.machine.end_with_parent import end_with_parent
end_with_parent()
import threading
print("ready", flush=True)
threading.Event().wait(60)
"""


def test_the_end_of_standard_input_ends_the_process() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"not the end")
        process.stdin.flush()
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(10) == -signal.SIGTERM
