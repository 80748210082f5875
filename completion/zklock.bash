# bash completion for zklock(1)

_zklock_locks() {
    # Asks the servers, but not for long: a shell that hangs on Tab is worse than no help.
    timeout 1 "${COMP_WORDS[0]}" ls --complete 2>/dev/null
}

_zklock() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local words="run hold elect status ls wait break leader ping top leases config help"
    local connection="--connect --prefix --session-timeout --server-tick --connect-timeout --auth-file --acl --config --tls-ca --tls-cert --tls-key --tls-server-name --sasl-user --sasl-password-file"
    local output="-v --verbose -q --quiet --json --no-color -h --help -V --version"
    local waiting="-n --nonblock -w --timeout -E --conflict-exit-code --lost-exit-code --no-create --progress --events --result --on-lost --on-lost-timeout --notify"
    local taking="-x --exclusive -s --shared --rw -j --count -L --lock --dialect --name --meta"
    local running="-c --command --signal -k --kill-after --on-suspend --min-hold --max-run --whole-tree"
    local once="--once-per --retry-unknown"
    local with_value=" $connection -w --timeout --wait
        -E --conflict-exit-code --lost-exit-code -j --count -L --lock --dialect --id --layout --name --meta --progress --events --result -c --command --signal -k
        --kill-after --on-suspend --min-hold --max-run --once-per --on-lost --on-lost-timeout --node --interval "
    with_value=${with_value//$'\n'/ }
    COMPREPLY=()

    case $prev in
        --on-suspend) mapfile -t COMPREPLY < <(compgen -W "ride stop pause" -- "$cur"); return ;;
        --layout) mapfile -t COMPREPLY < <(compgen -W "latch selector kazoo" -- "$cur"); return ;;
        --dialect) mapfile -t COMPREPLY < <(compgen -W "curator kazoo" -- "$cur"); return ;;
        -L | --lock) mapfile -t COMPREPLY < <(compgen -W "$(_zklock_locks)" -- "$cur"); return ;;
        --progress) mapfile -t COMPREPLY < <(compgen -W "auto never always" -- "$cur"); return ;;
        --signal)
            mapfile -t COMPREPLY < <(compgen -A signal -- "SIG${cur#SIG}")
            [[ $cur == SIG* ]] || COMPREPLY=("${COMPREPLY[@]#SIG}")
            return
            ;;
        --auth-file | --config | --events | --result | --tls-ca | --tls-cert | --tls-key | --sasl-password-file)
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
            ;;
    esac
    [[ $with_value == *" $prev "* ]] && return

    # Where are we: which word, and is the lock there already?
    local command=run first=1 lock=0 set=0 i
    case ${COMP_WORDS[1]} in
        run | hold | elect | status | ls | wait | break | leader | ping | top | leases | config | help)
            if ((COMP_CWORD > 1)); then
                command=${COMP_WORDS[1]}
                first=2
            fi
            ;;
    esac
    for ((i = first; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -L || ${COMP_WORDS[i]} == --lock ]] && set=1
        # There is no LOCK then: the command stands behind --.
        if [[ ${COMP_WORDS[i]} == -- ]] && ((set)); then
            lock=$((i - 1))
            break
        fi
        if [[ ${COMP_WORDS[i]} == /* && $with_value != *" ${COMP_WORDS[i - 1]} "* ]]; then
            lock=$i
            break
        fi
    done

    if [[ $command == @(run|elect) ]] && ((lock > 0)); then
        # The rest is another command's line.
        i=$((lock + 1))
        [[ ${COMP_WORDS[i]} == -- ]] && ((i < COMP_CWORD)) && i=$((i + 1))
        if declare -F _command_offset >/dev/null; then
            _command_offset "$i"
        elif ((i == COMP_CWORD)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        fi
        return
    fi

    if [[ $command == help ]]; then
        ((COMP_CWORD == 2)) && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
        return
    fi

    local options="$connection $output"
    case $command in
        run) options+=" $waiting $taking $running $once" ;;
        hold) options+=" $waiting $taking" ;;
        elect) options+=" $waiting $running --id --layout" ;;
        top) options+=" --once --count --interval" ;;
        leader | status) options+=" --watch" ;;
        wait) options+=" -w --timeout" ;;
        break) options+=" --holder --node --all --yes" ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
    else
        local candidates=""
        ((COMP_CWORD == 1)) && candidates=$words
        [[ $command != @(ping|config) ]] && ((lock == 0 && set == 0)) && candidates+=" $(_zklock_locks)"
        mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$cur")
    fi
}

complete -F _zklock zklock
