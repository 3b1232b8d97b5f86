# piton run: a checkpoint before what a bash without a terminal is told to do. Such a bash reads the file that BASH_ENV
# names. docs/SHELLS.md.
# shellcheck shell=bash

# A trace is for the command, and not for this.
{
    case $- in *x*) __piton_trace=1 ;; *) __piton_trace='' ;; esac
    set +x
} 2>/dev/null

if [[ -n ${PITON_RUN-} && -x '@PROGRAM@' ]]; then
    __piton_step() {
        local IFS=$' \t\n' line status=0
        local -a options=()
        if [[ -n ${BASH_EXECUTION_STRING+set} ]]; then
            line=$BASH_EXECUTION_STRING
        elif [[ -f $0 ]]; then
            printf -v line '%q ' bash "$0" "$@"
        else
            # It reads its commands from a pipe or a terminal.
            line=bash options=(--doubt)
        fi
        '@PROGRAM@' shell before --step --session "$PITON_RUN" --line "$$" "${options[@]}" \
            <<<"$line" >/dev/null || status=$?
        [[ $status != 5 ]] || exit 126
    }
    __piton_step "$@"
    unset -f __piton_step
fi

if [[ -n ${PITON_BASH_ENV-} ]]; then
    # Expanded as bash expands BASH_ENV itself: a tilde, and the rest as if in double quotes.
    __piton_rest=$PITON_BASH_ENV __piton_file=''
    if [[ $__piton_rest =~ ^(~[A-Za-z0-9_.-]*)(/.*)?$ ]]; then
        __piton_rest=${BASH_REMATCH[2]}
        eval "__piton_file=${BASH_REMATCH[1]}"
    fi
    if [[ $__piton_rest == *[\\\`]* ]]; then
        # No name of a file that anybody has; its quotes would be those of the line below.
        __piton_file+=$__piton_rest
    else
        eval "__piton_file+=\"${__piton_rest//\"/\\\"}\""
    fi
    unset __piton_rest
    if [[ -n $__piton_trace ]]; then set -x; fi
    # shellcheck disable=SC1090
    if [[ -r $__piton_file ]]; then . "$__piton_file"; fi
    { unset __piton_file; } 2>/dev/null
fi
if [[ -n $__piton_trace ]]; then
    unset __piton_trace
    set -x
else
    unset __piton_trace
fi
