#!/bin/sh
# The Consul side of docs/coming_from/consul.md. Debian 12 has no consul, so this runs only where it was installed by hand.
set -eu
export CONSUL_HTTP_ADDR="$1"
case $2 in
lock)
    # [lock]
    consul lock locks/report ./make-report
    # [/lock]
    ;;
semaphore)
    # [semaphore]
    consul lock -n 4 limits/convert ./make-report
    # [/semaphore]
    ;;
esac
