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

# Whether a version of a package meets a choice of scripts/packages: "name" or "name>=version".
meets() { # VERSION CHOICE
    [ -n "$1" ] && [ "$1" != '(none)' ] && { [[ $2 != *'>='* ]] || dpkg --compare-versions "$1" ge "${2#*>=}"; }
}

missing_packages() { # GROUP...
    local package choice choices state version
    for package in $(packages_of "$@"); do
        IFS='|' read -ra choices <<<"$package"
        for choice in "${choices[@]}"; do
            read -r state version < <(dpkg-query -W -f='${db:Status-Status} ${Version}\n' "${choice%>=*}" 2>/dev/null)
            [ "$state" = installed ] && meets "$version" "$choice" && continue 2
        done
        printf '%s ' "$package"
    done
}

release_is() { # FIELD
    sed -n "s/^$1=\"\?\([^\"]*\)\"\?$/\1/p" /etc/os-release 2>/dev/null
}
release_name() { # "Debian GNU/Linux 12 (bookworm)"
    local name
    name=$(release_is PRETTY_NAME)
    printf %s "${name:-This system}"
}

# What this release calls some packages. Says which ones it does not have, and fails.
names_of() { # PACKAGE...
    local package choice choices name version lacking=''
    local -A offered=()
    while read -r name version; do
        offered[$name]=$version
    done < <(sed 's/>=[^ |]*//g; s/|/ /g' <<<"$*" | LC_ALL=C xargs apt-cache policy 2>/dev/null |
        awk '/^[^ ]/ { name = $1; sub(/:$/, "", name) } $1 == "Candidate:" { print name, $2 }')
    for package in "$@"; do
        IFS='|' read -ra choices <<<"$package"
        for choice in "${choices[@]}"; do
            name=${choice%>=*}
            meets "${offered[$name]:-}" "$choice" && { printf '%s ' "$name"; continue 2; }
        done
        lacking+="${lacking:+, }${package//|/ or }"
    done
    [ -n "$lacking" ] || return 0
    complain "$(release_name) does not have: $lacking"
    complain "zkrecipes is tested on Debian 12 and 13. Elsewhere, install the counterparts by hand, then run this again with"
    complain "--no-install."
    return 1
}

# Installs what is missing, or says what the reader has to do. Quiet when nothing is missing.
install_packages() { # LOG GROUP...
    local log=$1 missing=() names apt=()
    shift
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        complain "This is not a Debian system. Install the counterparts of these packages by hand, then run this again with --no-install:"
        complain "  $(packages_of "$@" | tr '\n' ' ')"
        return 1
    fi
    read -ra missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            apt=(sudo)
        else
            complain "These Debian packages are missing, and only root can install them:"
            names=$(names_of "${missing[@]}" 2>/dev/null) || names=$(sed 's/>=[^ |]*//g; s/|[^ ]*//g' <<<"${missing[*]}")
            complain "  sudo apt-get install --no-install-recommends $names"
            return 1
        fi
    fi
    if ! "${apt[@]}" apt-get -q update >>"$log" 2>&1; then
        tail -n 15 "$log" >&2
        complain "apt-get update failed (the whole output is in $log). Are the archives of $(release_name) reachable?"
        return 1
    fi
    names=$(names_of "${missing[@]}") || return 1
    say "Installing Debian packages: $names"
    # shellcheck disable=SC2086
    if ! "${apt[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 install \
        --no-install-recommends $names >>"$log" 2>&1; then
        tail -n 15 "$log" >&2
        complain "apt-get failed on $(release_name) (the whole output is in $log)."
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
