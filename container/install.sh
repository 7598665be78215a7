#!/bin/sh
# install.sh ROOT: makes the files that test kits run in the images apache/kafka and confluentinc/cp-kafka.
# A start script of a test kit may append lines to configure, empty ensure, or run all of them.
set -eu
root=${1%/}

write() { # PATH, then the lines of the script
    path=$root$1
    shift
    mkdir -p "$(dirname "$path")"
    printf '%s\n' '#!/bin/sh' "$@" > "$path"
    chmod 755 "$path"
}

start='exec python -m odradek.broker.container'
write /etc/kafka/docker/run "$start"
write /etc/confluent/docker/run "$start"
write /etc/confluent/docker/launch "$start"
write /etc/confluent/docker/configure
write /etc/confluent/docker/ensure
write /etc/confluent/docker/bash-config
# The metadata is in the broker: there is no ZooKeeper to start, and no KRaft log to format.
write /usr/local/bin/zookeeper-server-start 'exit 0'
# shellcheck disable=SC2016
write /usr/local/bin/kafka-storage 'if [ "${1:-}" = random-uuid ]; then echo T2RyYWRlayBvZG5vZGVrIQ; fi'
