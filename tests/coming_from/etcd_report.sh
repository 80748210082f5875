#!/bin/sh
# The etcd side of docs/coming_from/etcd.md.
set -eu
servers=$1
export ETCDCTL_API=3
# [lock]
etcdctl --endpoints="$servers" \
    lock --ttl=15 report ./make-report
# [/lock]
