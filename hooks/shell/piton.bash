# piton: a checkpoint before a line that may destroy something. `piton init bash` prints this file; docs/SHELLS.md.
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2128,SC2154,SC2178

# PS0 is of bash 4.4. Without `promptvars` it would not be expanded.
if [[ $- == *i* ]] && shopt -q promptvars &&
    ((BASH_VERSINFO[0] > 4 || (BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4))); then

    __piton_program='@PROGRAM@'
    __piton_reads=' @READS@ '
    if [[ -z ${__piton_session-} ]]; then
        __piton_session="bash.$$.@STAMP@"
        __piton_line=0
        __piton_number=-
    fi
    # 1 while a line runs whose end piton wants to know.
    __piton_asked=0

    # Runs in a subshell, once for each line, before its first command. It prints a digit.
    __piton_before() {
        [[ -x $__piton_program ]] || return 0
        set +eu
        local IFS=$' \t\n' entry line='' number='\!' doubt='' word words
        local -a options=(--session "$__piton_session" --pid "$$" --line "$__piton_line")
        entry=$(HISTTIMEFORMAT='' builtin history 1 2>/dev/null)
        [[ $entry =~ ^[[:space:]]*[0-9]+[*[:space:]][[:space:]](.*)$ ]] && line=${BASH_REMATCH[1]}
        number=${number@P}
        if [[ $number == "$__piton_number" ]]; then
            # No line was added: it repeats the last one, or the history leaves it out.
            case ${HISTCONTROL-} in
                *ignorespace* | *ignoreboth*) doubt=1 ;;
            esac
        fi
        [[ -n ${HISTIGNORE-} && $number == "$__piton_number" || ! -o history ]] && doubt=1
        if [[ -n $doubt ]]; then
            line=''
            options+=(--doubt)
        elif __piton_only_reads "$line"; then
            return 0
        fi
        # No other process knows this shell's aliases.
        read -r -d '' -a words <<<"$line"
        for word in "${words[@]:0:64}"; do
            if [[ $word =~ ^[A-Za-z_][A-Za-z0-9_.+-]*$ && -n ${BASH_ALIASES[$word]-} ]]; then
                options+=(--alias "$word=${BASH_ALIASES[$word]}")
            fi
        done
        # It prints the digit, and interrupts this shell where the line is not to run: one process less.
        exec "$__piton_program" shell before --digit "${options[@]}" <<<"$line"
    }

    # True for a line of one simple command that only reads, by its name.
    __piton_only_reads() {
        [[ $1 != *[\;\&\|\<\>\(\)\`]* && $1 != *$'\n'* && $1 != *' --o'* ]] || return 1
        local word=${1%%[[:space:]]*} rest alias
        alias=${BASH_ALIASES[${word:-_}]-}
        if [[ -n $alias ]]; then
            [[ $alias == "$word" || $alias == "$word "* ]] || return 1
            [[ $alias != *[\;\&\|\<\>\(\)\`]* && $alias != *' --o'* ]] || return 1
        fi
        if [[ $word == git ]]; then
            rest=${1#git}
            rest=${rest#"${rest%%[![:space:]]*}"}
            word=git-${rest%%[[:space:]]*}
        fi
        [[ $__piton_reads == *" $word "* ]]
    }

    # Runs before each prompt, in the shell itself. It gives the status on.
    __piton_after() {
        local status=$? number='\!'
        if [[ $__piton_asked != 0 ]]; then
            __piton_asked=0
            if [[ -x $__piton_program ]]; then
                "$__piton_program" shell after --session "$__piton_session" --pid "$$" --line "$__piton_line" \
                    --exit "$status" </dev/null >/dev/null || :
            fi
        fi
        __piton_line=$((__piton_line + 1))
        __piton_number=${number@P}
        # Another tool may have replaced it.
        [[ ${PS0-} == *__piton_before* ]] || PS0="$__piton_ps0${PS0-}"
        # Under `set -e` a status would end the shell.
        if [[ $- == *e* ]]; then return 0; else return "$status"; fi
    }

    # It expands to nothing, and keeps the digit.
    __piton_ps0='${__piton_asked:$((__piton_asked = 0$(__piton_before), 0)):0}'
    [[ ${PS0-} == *__piton_before* ]] || PS0="$__piton_ps0${PS0-}"
    if [[ ${PROMPT_COMMAND[*]-} != *__piton_after* ]]; then
        if [[ "$(declare -p PROMPT_COMMAND 2>/dev/null)" == 'declare -a'* ]]; then
            PROMPT_COMMAND=(__piton_after "${PROMPT_COMMAND[@]}")
        else
            PROMPT_COMMAND="__piton_after${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}"
        fi
    fi
fi
