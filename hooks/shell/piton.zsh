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
        \builtin emulate -L zsh +x 2>/dev/null
        # They are there again at the end of the function.
        \builtin trap - DEBUG ZERR
        \builtin setopt no_err_exit no_err_return no_unset
        \builtin local line=${3:-${1-}} code word
        __piton_only_reads "$line" && \builtin return 0
        if [[ ! -f $__piton_program || ! -x $__piton_program ]]; then
            # The next piton lists the line as one that ran without a checkpoint.
            /bin/sh -c '@NOTE@' </dev/null
            \builtin return 0
        fi
        \builtin local -a options
        options=( --session "$__piton_session" --pid "$$" --line "$__piton_line" --cwd "$PWD" )
        # No other process knows this shell's functions.
        for word in ${=line//[^A-Za-z0-9_.+-]/ }; do
            if (( ${+functions[$word]} )); then
                options+=( --doubt )
                \builtin break
            fi
        done
        {
            "$__piton_program" shell before $options <<<"$line" >/dev/null 2>&4 4>&-
            code=$?
            if (( code != 0 && code != 3 && code != 5 && code < 128 )); then
                # No file could be made for the line.
                \builtin print -rn -- "$line" | "$__piton_program" shell before $options >/dev/null 2>&4 4>&-
                code=$?
            fi
        } 4>&2 2>/dev/null
        case $code in
            (0) ;;
            (3) __piton_asked=1 __piton_used=1 ;;
            (5)
                # The interrupt drops the line, as Ctrl-C does, where no trap of the user's catches it.
                \builtin trap - INT
                \builtin kill -INT $$
                ;;
            (*) \builtin print -ru2 -- "piton: it gave no answer ($code), so this line runs without a checkpoint" ;;
        esac
        \builtin return 0
    }

    # True for a line of one simple command that only reads, by its name: nothing in it stands for anything else.
    __piton_only_reads() {
        # Aliases have it, and are expanded.
        \builtin local text=${1/ --color=(auto|tty|always)/}
        [[ $text == *[^A-Za-z0-9_./~:,@%+*?\ -]* || $text == *' --o'* ]] && \builtin return 1
        \builtin local -a words
        words=( ${=text} )
        \builtin local word=${words[1]-}
        (( ${+functions[$word]} )) && \builtin return 1
        case $word in
            # A file may have the name of an option.
            (git) [[ $1 == *[*?]* ]] && \builtin return 1; word=git-${words[2]-} ;;
            (man|jobs) [[ $1 == *[-*?]* ]] && \builtin return 1 ;;
        esac
        [[ $__piton_reads == *" $word "* ]]
    }

    # Runs before each prompt.
    __piton_precmd() {
        \builtin local code=$?
        \builtin emulate -L zsh +x 2>/dev/null
        \builtin trap - DEBUG ZERR
        \builtin setopt no_err_exit no_err_return no_unset
        if (( __piton_asked )); then
            __piton_asked=0
            if [[ -f $__piton_program && -x $__piton_program ]]; then
                "$__piton_program" shell after --session "$__piton_session" --pid "$$" --line "$__piton_line" \
                    --exit "$code" </dev/null >/dev/null
            fi
        fi
        (( __piton_line += 1 ))
        \builtin return 0
    }

    __piton_exit() {
        \builtin emulate -L zsh +x 2>/dev/null
        \builtin trap - DEBUG ZERR
        \builtin setopt no_err_exit no_err_return no_unset
        if (( __piton_used )) && [[ -f $__piton_program && -x $__piton_program ]]; then
            "$__piton_program" shell end --session "$__piton_session" --pid "$$" </dev/null >/dev/null
        fi
        \builtin return 0
    }

    autoload -Uz add-zsh-hook
    add-zsh-hook preexec __piton_preexec
    add-zsh-hook precmd __piton_precmd
    add-zsh-hook zshexit __piton_exit
fi
