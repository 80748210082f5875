# shellcheck shell=bash
# Sourced by scripts/deb and scripts/platforms: a clean Debian in a directory, with the name spaces in which commands run
# there. For root. Expects common.bash.

# Lines for the sources.list of a release: the archives from which apt on this machine installs Debian's packages. Fails
# where apt knows none.
debian_sources() { # RELEASE
    local own lines
    own=$(release_is VERSION_CODENAME)
    lines=$(apt-get indextargets --format "deb \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' 'Origin: Debian' |
        awk -v own="$own" -v release="$1" '
            $3 != own && index($3, own "-") != 1 { next }  # of another release
            release == "sid" && $3 != own { next }         # it has neither updates nor security
            { $3 = release substr($3, length(own) + 1); print }' | sort -u)
    [ -n "$lines" ] || { complain "apt on this machine does not know its own release ($(release_name)). Run apt-get update first."; return 1; }
    printf '%s\n' "$lines"
}

# The directories NAME.PID that runs which were killed have left. A new process may have the number of one of them.
remove_old_roots() { # NAME
    local old pid
    for old in "$1".*/; do
        pid=$(basename "${old##*.}")
        [[ $pid =~ ^[0-9]+$ ]] || continue
        if [ "$pid" = $$ ] || ! kill -0 "$pid" 2>/dev/null; then rm -rf "$old"; fi
    done
}

# A Debian with nothing in it. What is fetched for that stays in CACHE for the next time.
make_root() { # LOG CACHE RELEASE ROOT
    local log=$1 cache=$2 release=$3 new=$4 sources
    sources=$(debian_sources "$release") || return 1
    mkdir -p "$new" "$cache/archives/partial" "$cache/ccache"
    if [ ! -e "$cache/clean-root.tar" ]; then
        # In the background, as below.
        logged "$log" "Making a clean Debian ($release)" setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child \
            debootstrap --variant=minbase --include=ca-certificates "$release" "$new" \
            "$(awk -v release="$release" '$3 == release { print $2; exit }' <<<"$sources")" &
        wait $! || return 1
        rm -f "$new"/var/cache/apt/archives/*.deb
        tar -C "$new" -cf "$cache/clean-root.tar.part" . && mv "$cache/clean-root.tar.part" "$cache/clean-root.tar" || return 1
    else
        tar -C "$new" -xf "$cache/clean-root.tar" || return 1
    fi
    printf '%s\n' "$sources" >"$new/etc/apt/sources.list"
    apt-config dump | grep -E '^Acquire::(https?::|Retries)' >"$new/etc/apt/apt.conf.d/99host"
    # sid's archive says that it is to be renewed each week, and mirrors may be behind.
    [ "$release" != sid ] || echo 'Acquire::Check-Valid-Until "false";' >>"$new/etc/apt/apt.conf.d/99host"
    # What apt fetches is kept.
    rm -f "$new/etc/apt/apt.conf.d/docker-clean"
    cp -L /etc/resolv.conf /etc/hosts "$new/etc/" 2>/dev/null || true
    mkdir -p "$new/project" "$new/ccache"
}

# Runs a command there. /project is PROJECT, read-only, unless that is empty. No process and no mount outlives the command,
# however this script ends. In the background, since bash heeds a signal only between commands, and unshare heeds none.
in_root() { # CACHE ROOT PROJECT COMMAND...
    # shellcheck disable=SC2016  # the inner shell's
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child bash -c 'set -e
        mount --bind "$2" "$2"  # tests change the mounts of / for themselves
        mount --bind "$1/archives" "$2/var/cache/apt/archives"
        mount --bind "$1/ccache" "$2/ccache"
        [ -z "$3" ] || mount --bind -o ro "$3" "$2/project"
        mount -t proc proc "$2/proc"
        mount -t sysfs sysfs "$2/sys"
        mount --rbind /dev "$2/dev"
        cd "$2"
        pivot_root . mnt  # not chroot: with that, programs see paths of the outer root in mount namespaces of their own
        umount -l /mnt
        cd /
        exec /usr/bin/env -i HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            LC_ALL=C.UTF-8 CCACHE_DIR=/ccache DEBIAN_FRONTEND=noninteractive "${@:4}"' bash "$@" </dev/null &
    wait $!
}
