from __future__ import annotations

from tests.support.transcripts.group_transcript import Transcript


def test_members_are_shown_with_the_host_as_java_prints_it() -> None:
    transcript = Transcript()
    transcript.run("join m v=3")
    assert "host=/127.0.0.1" in transcript.run("describe g")[1]
