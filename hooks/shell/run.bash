# piton run: a checkpoint before what a bash without a terminal is told to do. Such a bash reads the file that BASH_ENV
# names. docs/SHELLS.md.
# shellcheck shell=bash

if [[ -n ${PITON_BASH_ENV-} ]]; then
    # Expanded as bash expands BASH_ENV itself, as if in double quotes.
    eval "__piton_file=\"${PITON_BASH_ENV//\"/\\\"}\""
    # shellcheck disable=SC1090,SC2154
    if [[ -r $__piton_file ]]; then . "$__piton_file"; fi
    unset __piton_file
fi

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
