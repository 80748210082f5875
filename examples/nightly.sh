#!/bin/sh
# A job that cron starts on every machine of a fleet, but that must run on only one at a time:
#
#     0 3 * * *  deploy  ZKLOCK_CONNECT=zk1:2181,zk2:2181 /usr/local/bin/nightly.sh
#
# Busy elsewhere is no error (exit code 0, cron stays silent). Everything else that goes wrong is told.
# shellcheck disable=SC2016  # the inner shell expands them
zklock -q --nonblock --name nightly /locks/nightly -- sh -c '
    echo "nightly job on $(uname -n), fencing token $ZKLOCK_FENCING_TOKEN"
    sleep "${NIGHTLY_SECONDS:-1}"
'
code=$?
case $code in
    0 | 75) exit 0 ;;
    69) echo "nightly: no ZooKeeper server answered" >&2 ;;
    79) echo "nightly: the lock was lost on the way, and the job stopped" >&2 ;;
    *) echo "nightly: exit code $code" >&2 ;;
esac
exit "$code"
