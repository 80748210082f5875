#!/bin/sh
# The side of zklock in docs/coming_from/database.md.
set -eu
export ZKLOCK_CONNECT="$1"
# shellcheck disable=SC2016
# [lock]
zklock /accounts/1 -- sh -c \
    'psql -q -v token=$ZKLOCK_FENCING_TOKEN -f fenced.sql'
# [/lock]
