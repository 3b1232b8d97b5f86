# piton begin: asks piton before git goes on. `piton uninstall git` takes this out, down to the line with the end.
piton_event='@EVENT@'
case $piton_event/${1-} in
    reference-transaction/prepared | pre-push/*)
        if [ -x '@PITON@' ] && [ ! -t 0 ]; then
            piton_answer=0
            piton_lines=$(cat)
            if [ -n "$piton_lines" ]; then
                printf '%s\n' "$piton_lines" 2>/dev/null | '@PITON@' git-door "$piton_event" "$@" || piton_answer=$?
                # A large text needs room for a file. Without, the hook reads nothing: it is not to end here.
                command exec <<PITON || exec </dev/null
$piton_lines
PITON
            else
                exec </dev/null
                '@PITON@' git-door "$piton_event" "$@" || piton_answer=$?
            fi
            # Only an answer is a refusal: a piton that fails stops nothing.
            if [ "$piton_answer" -eq 1 ]; then
                exit 1
            fi
            unset piton_answer piton_lines
        fi
        ;;
esac
unset piton_event
# piton end
