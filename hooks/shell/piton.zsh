# piton: a checkpoint before a line that may destroy something. `piton init zsh` prints this file; docs/SHELLS.md.

if [[ -o interactive ]]; then
    typeset -g __piton_program='@PROGRAM@'
    typeset -g __piton_reads=' @READS@ '
    if [[ -z ${__piton_session-} ]]; then
        typeset -g __piton_session="zsh.$$.@STAMP@"
        typeset -gi __piton_line=0 __piton_used=0
    fi
    # 1 while a line runs whose end piton wants to know.
    typeset -gi __piton_asked=0

    # Runs before each line. `$3` is the line with its aliases expanded.
    __piton_preexec() {
        emulate -L zsh
        setopt no_err_exit no_err_return no_unset
        [[ -x $__piton_program ]] || return 0
        local line=${3:-${1-}}
        __piton_only_reads "$line" && return 0
        "$__piton_program" shell before --session "$__piton_session" --pid "$$" --line "$__piton_line" \
            <<<"$line" >/dev/null
        case $? in
            (3) __piton_asked=1 __piton_used=1 ;;
            # The interrupt drops the line, as Ctrl-C does.
            (5) kill -INT $$ ;;
        esac
        return 0
    }

    # True for a line of one simple command that only reads, by its name.
    __piton_only_reads() {
        [[ $1 == *[\;\&\|\<\>\(\)\`]* || $1 == *$'\n'* || $1 == *' --o'* ]] && return 1
        local -a words=( ${=1} )
        local word=${words[1]-}
        [[ $word == git ]] && word=git-${words[2]-}
        [[ $__piton_reads == *" $word "* ]]
    }

    # Runs before each prompt.
    __piton_precmd() {
        local code=$?
        emulate -L zsh
        setopt no_err_exit no_err_return no_unset
        if (( __piton_asked )); then
            __piton_asked=0
            if [[ -x $__piton_program ]]; then
                "$__piton_program" shell after --session "$__piton_session" --pid "$$" --line "$__piton_line" \
                    --exit "$code" </dev/null >/dev/null
            fi
        fi
        (( __piton_line += 1 ))
        return 0
    }

    __piton_exit() {
        emulate -L zsh
        setopt no_err_exit no_err_return no_unset
        if (( __piton_used )) && [[ -x $__piton_program ]]; then
            "$__piton_program" shell end --session "$__piton_session" --pid "$$" </dev/null >/dev/null
        fi
        return 0
    }

    autoload -Uz add-zsh-hook
    add-zsh-hook preexec __piton_preexec
    add-zsh-hook precmd __piton_precmd
    add-zsh-hook zshexit __piton_exit
fi
