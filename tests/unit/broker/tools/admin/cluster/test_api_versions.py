from __future__ import annotations

import json

from odradek.broker.tools.admin.cluster.api_versions import main
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from tests.support.clusters.admin_cluster import AdminCluster, Command


def test_versions_of_each_broker(cluster: AdminCluster, command: Command) -> None:
    served = [
        ApiVersion(api_key=1, min_version=4, max_version=99),
        ApiVersion(api_key=0, min_version=3, max_version=3),
        ApiVersion(api_key=2, min_version=90, max_version=99),
        ApiVersion(api_key=999, min_version=0, max_version=1),
    ]

    def versions(broker_id: int, request: ApiVersionsRequest) -> ApiVersionsResponse:
        if broker_id == 3:
            raise ConnectionRefusedError("it is down")
        return ApiVersionsResponse(api_keys=served)

    cluster.on(ApiVersionsRequest, versions)
    status, lines, error = command(main)
    assert (status, error) == (
        1,
        "host:9003 (id: 3 rack: null) -> ERROR: it is down\nodradek: 1 broker(s) do not answer\n",
    )
    assert lines[:5] == [
        "host:9001 (id: 1 rack: null) -> (",
        "\tProduce(0): 3 [usable: 3],",
        "\tFetch(1): 4 to 99 [usable: 17],",
        "\tListOffsets(2): 90 to 99 [unusable: node too new],",
        "\tMetadata(3): UNSUPPORTED,",
    ]
    end = lines.index(")")
    assert lines[end - 1] == "\tUNKNOWN(999): 0 to 1"
    assert not any("LeaderAndIsr" in line for line in lines), "clients do not use it"
    rows = json.loads("".join(command(main, "--json")[1]))
    assert rows[1] == {"broker": 1, "api": "Fetch", "key": 1, "min": 4, "max": 99, "usable": 17}
