# shellcheck shell=bash
# Sourced by the other scripts: packages, log files, stages. Expects `root` to be the top of the project.

: "${root:?set it to the top of the project first}"

say() { printf '%s\n' "$*"; }
complain() { printf '%s\n' "$*" >&2; }

# Reads the packages of some groups from scripts/packages.
packages_of() { # GROUP...
    local group
    for group in "$@"; do
        awk -v group="$group" '$1 == group { print $2 }' "$root/scripts/packages"
    done
}

missing_packages() { # GROUP...
    local package
    for package in $(packages_of "$@"); do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
    done
}

# Installs what is missing, or says what the reader has to do. Quiet when nothing is missing.
install_packages() { # LOG GROUP...
    local log=$1 missing apt=()
    shift
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        complain "This is not a Debian system. Install the counterparts of these packages by hand, then run this again with --no-install:"
        complain "  $(packages_of "$@" | tr '\n' ' ')"
        return 1
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            apt=(sudo)
        else
            complain "These Debian packages are missing, and only root can install them:"
            complain "  sudo apt-get install --no-install-recommends $missing"
            return 1
        fi
    fi
    say "Installing Debian packages: $missing"
    # shellcheck disable=SC2086
    if ! {
        "${apt[@]}" apt-get -q update &&
            "${apt[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 install --no-install-recommends $missing
    } >>"$log" 2>&1; then
        tail -n 15 "$log" >&2
        complain "apt-get failed (the whole output is in $log). Is Debian 12 the release, and is its archive reachable?"
        return 1
    fi
}

# Runs a command with its output in the log. On failure shows the end of it and names the log.
logged() { # LOG WHAT COMMAND...
    local log=$1 what=$2 from
    shift 2
    from=$(wc -l <"$log")
    printf '\n==> %s: %s\n' "$what" "$*" >>"$log"
    "$@" >>"$log" 2>&1 </dev/null && return
    tail -n "+$((from + 2))" "$log" | tail -n 60 >&2
    complain "$what failed. The whole output is in $log"
    return 1
}

find_ccache() {
    if [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
        export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1
    fi
}

configure_preset() { # LOG PRESET
    find_ccache
    logged "$1" "Configuring ($2)" cmake --preset "$2"
}

# Builds everything, or the named targets alone.
build_targets() { # LOG JOBS PRESET TARGET...
    local log=$1 jobs=$2 preset=$3
    shift 3
    logged "$log" "Building ($preset)" cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}
}

build_preset() { # LOG JOBS PRESET TARGET...
    configure_preset "$1" "$3" && build_targets "$@"
}
