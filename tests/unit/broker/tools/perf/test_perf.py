from __future__ import annotations

import pytest

from odradek.broker.tools.perf.perf import main
from tests.support.clusters.data_cluster import DataCluster


def test_the_first_word_chooses(cluster: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["end-to-end"]) == 1
    assert "USAGE: odradek perf end-to-end" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["compact"])
    with pytest.raises(SystemExit, match="2"):
        main([])
