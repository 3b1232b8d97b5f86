# piton: a checkpoint before a line that may destroy something. `piton init bash` prints this file; docs/SHELLS.md.
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2093,SC2128,SC2154,SC2178,SC2179

# Aliases of the user's are not for this file.
if shopt -q expand_aliases; then __piton_aliases=1; else __piton_aliases=; fi
\shopt -u expand_aliases

# PS0 is of bash 4.4, and is expanded with `promptvars` only.
if [[ $- != *i* ]] || ((BASH_VERSINFO[0] < 4 || (BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] < 4))); then
    :
elif shopt -q restricted_shell || [[ ${PS0@a} == *r* ]]; then
    echo 'piton: it cannot guard a shell that is restricted, or whose PS0 is readonly' >&2
elif shopt -q promptvars; then
    __piton_program='@PROGRAM@'
    __piton_reads=' @READS@ '
    if [[ -z ${__piton_session-} ]]; then
        __piton_session="bash.$$.@STAMP@"
        # The number of the line, and the history's number when the line was asked for.
        __piton_line=1 __piton_number=0
        # 1 if __piton_mark ran after the last line; 1 if the person was told that it does not.
        __piton_fresh=0 __piton_told=0
    fi
    # What piton answered for the line: 1 wants to know of its end, 2 does not, 5 drops it. An array is never exported.
    __piton_answer=2
    __piton_said=([0]=$'piton: it gave no answer, so this line runs without a checkpoint\n' [1]='' [2]='')
    __piton_held=0
    __piton_drop='1 / __piton_held'

    # Runs in a subshell, once for each line, before its first command; `$1` is the history's number. It prints a digit on 3,
    # and talks on 4.
    __piton_before() {
        # In this mode no function of the user's hides these.
        POSIXLY_CORRECT=1
        \trap - ERR DEBUG RETURN
        \set +eux
        \unset -f builtin local read history printf shopt declare trap set exec unset
        \unset POSIXLY_CORRECT
        shopt -u nocasematch
        local IFS=$' \t\n' LC_ALL=C entry line='' doubt='' word words stamp now
        local -a options=(--session "$__piton_session" --pid "$$" --line "$__piton_line" --cwd "$PWD")
        if ((!__piton_fresh && !__piton_told)); then
            printf 'piton: PROMPT_COMMAND was replaced; piton'"'"'s line belongs at the end of ~/.bashrc\n' >&4
        fi
        if [[ ${HISTTIMEFORMAT@a} == *r* ]]; then
            entry=$(history 1)
            printf -v now '%(%s)T' -1
            for ((word = now; word > now - 5; word--)); do
                printf -v stamp "%($HISTTIMEFORMAT)T" "$word"
                [[ ${entry:7} != "$stamp"* ]] || break
            done
            if [[ ${entry:7} == "$stamp"* ]]; then entry=${entry:0:7}${entry:$((7 + ${#stamp}))}; else entry=''; fi
        else
            entry=$(HISTTIMEFORMAT='' history 1)
        fi
        [[ $entry =~ ^[[:space:]]*[0-9]+[*[:space:]][[:space:]](.*)$ ]] && line=${BASH_REMATCH[1]}
        case ${HISTCONTROL-}:${HISTIGNORE:+ignorespace} in
            *ignorespace* | *ignoreboth*)
                # No line was added: it repeats the last one, or the history leaves it out.
                [[ $1 != "$__piton_number" ]] || doubt=1
                # Another shell's lines may have come in between.
                [[ $__piton_fresh == 1 || ${PROMPT_COMMAND[*]-} != *history* ]] || doubt=1
                ;;
        esac
        # Lines that stand in the history one by one, or those of another shell.
        (($1 <= __piton_number + 1 || __piton_number == 0)) || doubt=1
        # Nobody told of the end of the line before.
        [[ $__piton_answer != 1 ]] || options+=(--open "$((__piton_line - 1))")
        if [[ -n $doubt || -z $line || ! -o history ]]; then
            line=''
            options+=(--doubt)
        elif [[ $__piton_answer != 1 ]] && __piton_only_reads "$line"; then
            printf 2 >&3
            return 0
        fi
        if [[ ! -f $__piton_program || ! -x $__piton_program ]]; then
            # The next piton lists the line as one that ran without a checkpoint.
            /bin/sh -c '@NOTE@' </dev/null
            printf 2 >&3
            return 0
        fi
        # No other process knows this shell's aliases, functions and `hash -p`.
        IFS=$' \t\n;&|()`' read -r -d '' -a words <<<"$line"
        for word in "${words[@]:0:256}"; do
            [[ $word =~ ^[A-Za-z0-9_.:+-]+$ ]] || continue
            [[ -z ${BASH_ALIASES[$word]-} ]] || options+=(--alias "$word=${BASH_ALIASES[$word]}")
            [[ -z $doubt ]] || continue
            if declare -F -- "$word" >/dev/null || [[ ${BASH_CMDS[$word]-/$word} != */"$word" ]]; then
                doubt=1 options+=(--doubt)
            fi
        done
        exec "$__piton_program" shell before --digit "${options[@]}" <<<"$line" >&3 2>&4 3>&- 4>&-
        # No file could be made for the line.
        printf '%s' "$line" | "$__piton_program" shell before --digit "${options[@]}" >&3 2>&4 3>&- 4>&-
    }

    # True for a line of one simple command that only reads, by its name: nothing in it stands for anything else.
    __piton_only_reads() {
        [[ $1 != *[!A-Za-z0-9_./~:,@%+*?\ -]* && $1 != *' --o'* ]] || return 1
        local word=${1%%[[:space:]]*} rest alias
        alias=${BASH_ALIASES[${word:-_}]-}
        if [[ -n $alias ]]; then
            [[ $alias == "$word" || $alias == "$word "* ]] || return 1
            [[ $alias != *[!A-Za-z0-9_./~:,@%+=\ -]* && $alias != *' --o'* && $alias != *' ' ]] || return 1
        fi
        ! declare -F -- "$word" >/dev/null || return 1
        [[ ${BASH_CMDS[${word:-_}]-/$word} == */"$word" ]] || return 1
        case $word in
            git)
                rest=${1#git}
                rest=${rest#"${rest%%[![:space:]]*}"}
                word=git-${rest%%[[:space:]]*}
                # A file may have the name of an option.
                [[ $1 != *[*?]* ]] || return 1
                ;;
            man | jobs) [[ $1 != *[-*?]* ]] || return 1 ;;
        esac
        [[ $__piton_reads == *" $word "* ]]
    }

    # Runs before each prompt, first, in the shell itself. It gives the status on, and talks on 4.
    __piton_after() {
        local status=$? IFS=$' \t\n'
        if [[ $__piton_answer == 1 && -f $__piton_program && -x $__piton_program ]]; then
            "$__piton_program" shell after --session "$__piton_session" --pid "$$" --line "$((__piton_line - 1))" \
                --exit "$status" </dev/null >/dev/null 2>&4 4>&- || :
        fi
        __piton_answer=2
        # Another tool may have replaced it.
        __piton_place_ps0 || :
        __piton_place_hooks || :
        return "$status"
    }

    # Runs before each prompt, last: what other tools did to the history is done.
    __piton_mark() {
        local status=$? number='\!'
        __piton_number=${number@P} __piton_fresh=1
        return "$status"
    }

    __piton_place_ps0() {
        if ! shopt -q promptvars; then
            [[ ${PS0-} != *__piton_before* ]] || echo 'piton: lines run without checkpoints: `shopt -u promptvars`' >&4
            PS0=${PS0//"$__piton_ps0"/}
        elif [[ ${PS0-} != *__piton_before* ]]; then
            PS0="$__piton_ps0${PS0-}"
        fi
    }

    # Puts the hooks first and last in PROMPT_COMMAND. In bash 5.1 it may be an array.
    __piton_place_hooks() {
        [[ ${PROMPT_COMMAND[*]-} != "$__piton_first"*"$__piton_last" ]] || return 0
        local hook text
        local -a kept=()
        if [[ ${PROMPT_COMMAND@a} == *a* ]] &&
            ((BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] > 0))); then
            for hook in "${PROMPT_COMMAND[@]}"; do
                [[ $hook == "$__piton_first" || $hook == "$__piton_last" ]] || kept+=("$hook")
            done
            PROMPT_COMMAND=("$__piton_first" "${kept[@]}" "$__piton_last")
        else
            text=${PROMPT_COMMAND-}
            text=${text//"$__piton_first"$'\n'/}
            text=${text//$'\n'"$__piton_last"/}
            PROMPT_COMMAND=$__piton_first$'\n'${text:+$text$'\n'}$__piton_last
        fi
    }

    # An arithmetic error is what makes bash drop a line, whatever the traps are. All else of it expands to nothing, and keeps
    # the answer. What traps and traces write is not for the answer.
    __piton_ps0='${__piton_said[0]:$((__piton_answer = 0$({ __piton_before \!; } 3>&1 4>&2 >/dev/null 2>&1), '
    __piton_ps0+='__piton_line += 1, __piton_told |= !__piton_fresh, __piton_fresh = 0, __piton_number = \!, '
    __piton_ps0+='__piton_answer == 5 ? __piton_drop : 0)):0}${__piton_said[__piton_answer]-}'
    # The status goes on, and no trap takes it for a failure. A shell that only inherits the variable does nothing.
    __piton_first='{ ${__piton_said[0]:+__piton_after}; } 4>&2 >/dev/null 2>&1 && :'
    __piton_last='{ ${__piton_said[0]:+__piton_mark}; } >/dev/null 2>&1 && :'
    __piton_place_ps0
    if [[ ${PROMPT_COMMAND@a} == *r* ]]; then
        __piton_told=1
        echo 'piton: PROMPT_COMMAND is readonly, so piton is not told of the end of a line' >&2
    else
        __piton_place_hooks
    fi
fi
[[ -z $__piton_aliases ]] || shopt -s expand_aliases
unset __piton_aliases
