#!/usr/bin/env bash
# Starts a broker or a cluster in the background and waits until it serves clients: what action.yml runs.
#
# Reads ODRADEK_BROKERS, ODRADEK_PORT, ODRADEK_AS_VERSION, ODRADEK_CONFIG (lines of server.properties) and ODRADEK_DATA.
# Writes bootstrap-servers, log and pid to the file $GITHUB_OUTPUT. The data and the log are below $RUNNER_TEMP.
set -euo pipefail
start_timeout_s=30

directory=$(mktemp -d "${RUNNER_TEMP:-/tmp}/odradek-broker.XXXXXX")
log=$directory/broker.log
: > "$log" # the loop below may read it before the broker opens it
printf '%s\n' "${ODRADEK_CONFIG:-}" > "$directory/server.properties"
arguments=("$directory/server.properties")
sets() {
    grep -Eq "^[[:space:]]*$1[[:space:]]*[=:]" "$directory/server.properties"
}
if ! sets listeners; then
    arguments+=(--port "${ODRADEK_PORT:-9092}")
fi
if ! sets 'log\.dirs?'; then
    arguments+=(--data "${ODRADEK_DATA:-$directory/data}")
fi
if [ -n "${ODRADEK_AS_VERSION:-}" ]; then
    arguments+=(--as-version "$ODRADEK_AS_VERSION")
fi
if [ "${ODRADEK_BROKERS:-1}" != 1 ]; then
    arguments+=(--brokers "$ODRADEK_BROKERS")
fi

nohup odradek serve "${arguments[@]}" > "$log" 2>&1 < /dev/null &
pid=$!

fail() {
    echo "::error::$1"
    cat "$log"
    kill "$pid" 2> /dev/null || true
    exit 1
}

# The banner names the address or, of a cluster, all addresses, also when the port is a free one.
address=
for ((waited = 0; waited < start_timeout_s * 20; waited++)); do
    address=$(sed -n -e 's|^ *listening on *[^:]*://\([^, ]*\).*|\1|p' \
        -e 's|^ *bootstrap servers *\([^ ]*\)$|\1|p' "$log" | head -n 1)
    if [ -n "$address" ]; then
        break
    fi
    kill -0 "$pid" 2> /dev/null || fail "the broker has ended"
    sleep 0.05
done
[ -n "$address" ] || fail "the broker did not start within $start_timeout_s s"
for one in ${address//,/ }; do
    odradek health "$one" || fail "the broker at $one does not answer"
done

{
    echo "bootstrap-servers=$address"
    echo "log=$log"
    echo "pid=$pid"
} >> "${GITHUB_OUTPUT:-/dev/stdout}"
echo "Odradek listens on $address; its log is $log"
