#!/bin/sh
# Written by `piton install git`, and taken away by `piton uninstall git` (docs/GIT.md). It asks piton before git goes on. A
# hook that was here before is in the directory piton-next, and runs afterwards. Without piton, it runs alone.

event='@EVENT@'
next=${0%/*}/piton-next/$event

case $event/${1-} in
    reference-transaction/prepared | pre-push/*)
        if [ -x '@PITON@' ] && [ ! -t 0 ]; then
            if [ ! -x "$next" ]; then
                '@PITON@' git-door "$event" "$@"
                # Only an answer is a refusal: a piton that fails stops nothing.
                [ $? -ne 1 ]
                exit
            fi
            lines=$(cat && echo .)
            printf %s "${lines%.}" 2>/dev/null | '@PITON@' git-door "$event" "$@"
            if [ $? -eq 1 ]; then
                exit 1
            fi
            printf %s "${lines%.}" 2>/dev/null | "$next" "$@"
            exit
        fi
        ;;
esac

if [ -x "$next" ]; then
    exec "$next" "$@"
fi
