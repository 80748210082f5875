#!/bin/sh
# Runs a job of cron's that stands on every machine of a fleet on one of them only: on whichever comes first.
#
#     # /etc/cron.d/report, the same on all machines
#     MAILTO=ops@example.org
#     ZKLOCK_CONNECT=zk1:2181,zk2:2181,zk3:2181
#     0 3 * * *  deploy  /usr/local/bin/nightly.sh report /usr/local/bin/make-report --all
#
# The others are silent and exit with 0. What goes wrong is told in one line, which cron mails, with the job's exit code
# or zklock's (man zklock). The job can hand $ZKLOCK_FENCING_TOKEN to what it writes to. `zklock status /cron/report`
# tells who is at it. Settings, from the environment:
#
#     NIGHTLY_MIN_HOLD   for how long the others are kept out at least, also when the job takes a second (60s): more than
#                        the clocks of the machines are apart, or a slow clock runs the job again
#     NIGHTLY_MAX_RUN    a job that takes longer hangs, and is stopped (6h)
#     NIGHTLY_LOCKS      where the locks are (/cron)
set -u
[ $# -ge 2 ] || { echo "usage: $0 NAME COMMAND [ARGUMENT...]" >&2; exit 64; }
name=$1
shift
directory=$(mktemp -d) || exit 71
trap 'rm -rf "$directory"' EXIT
result=$directory/result

# Behind the wait a signal reaches this shell at once, and it passes it on: the job ends before the lock is given back.
zklock --quiet --nonblock --min-hold "${NIGHTLY_MIN_HOLD:-60s}" --max-run "${NIGHTLY_MAX_RUN:-6h}" \
    --name "cron: $name" --result "$result" "${NIGHTLY_LOCKS:-/cron}/$name" -- "$@" &
zklock=$!
trap 'kill -TERM "$zklock"' HUP INT TERM
wait "$zklock"
code=$?
while kill -0 "$zklock" 2>/dev/null; do  # a signal ends a wait, too
    wait "$zklock"
    code=$?
done

# The exit code alone does not tell the job's 75 from zklock's.
field() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' "$result" 2>/dev/null; }
complain() { echo "$name on $(uname -n): $*" >&2; }
case $(field outcome) in
    busy) exit 0 ;;
    exited) [ "$code" = 0 ] || complain "the job failed with exit code $code" ;;
    signalled) complain "the job was ended by a signal (exit code $code)" ;;
    max_run) complain "the job was stopped after ${NIGHTLY_MAX_RUN:-6h}" ;;
    lost) complain "the lock was lost on the way, and the job was stopped: $(field reason)$(field message)" ;;
    unavailable) complain "no ZooKeeper server answered, the job was not started" ;;
    interrupted) complain "stopped before the job was started" ;;
    '') case $code in
        64 | 78) complain "zklock refused its options or its configuration (exit code $code)" ;;
        126 | 127) complain "zklock could not be run (exit code $code)" ;;
        *) complain "zklock was killed, and the job with it (exit code $code)" ;;
        esac ;;
    *) complain "$(field message) (exit code $code)" ;;
esac
exit "$code"
