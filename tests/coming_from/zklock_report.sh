#!/bin/sh
# The side of zklock in docs/coming_from/etcd.md and docs/coming_from/consul.md.
set -eu
servers=$1
[ "$2" = etcd ] || export ZKLOCK_CONNECT="$servers"
case $2 in
etcd)
    # [etcd]
    zklock --connect="$servers" --session-timeout=15 \
        /locks/report -- ./make-report
    # [/etcd]
    ;;
consul)
    # [consul]
    zklock /locks/report -- ./make-report
    # [/consul]
    ;;
semaphore)
    # [semaphore]
    zklock -j 4 /limits/convert -- ./make-report
    # [/semaphore]
    ;;
esac
