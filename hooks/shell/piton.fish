# piton: a checkpoint before a line that may destroy something. `piton init fish` prints this file; docs/SHELLS.md.

if status is-interactive
    set -g __piton_program '@PROGRAM@'
    set -g __piton_reads @READS@
    if not set -q __piton_session
        set -g __piton_session "fish.$fish_pid.@STAMP@"
        set -g __piton_line 0
        set -g __piton_used 0
    end
    # 1 while a line runs whose end piton wants to know.
    set -g __piton_asked 0

    # Runs before each line.
    function __piton_preexec --on-event fish_preexec
        test -x "$__piton_program"; or return 0
        __piton_only_reads "$argv[1]"; and return 0
        printf '%s' "$argv[1]" | $__piton_program shell before --session $__piton_session --pid $fish_pid \
            --line $__piton_line --cannot-cancel >/dev/null
        if test $pipestatus[2] -eq 3
            set -g __piton_asked 1
            set -g __piton_used 1
        end
        return 0
    end

    # True for a line of one simple command that only reads, by its name.
    function __piton_only_reads
        string match -qr '[;&|<>()`]|\n| --o' -- $argv[1]; and return 1
        set -l words (string split -n ' ' -- $argv[1])
        set -l word $words[1]
        test "$word" = git; and set word git-$words[2]
        contains -- "$word" $__piton_reads
    end

    # Runs after each line.
    function __piton_postexec --on-event fish_postexec
        set -l code $status
        if test $__piton_asked -eq 1
            set -g __piton_asked 0
            if test -x "$__piton_program"
                $__piton_program shell after --session $__piton_session --pid $fish_pid --line $__piton_line \
                    --exit $code </dev/null >/dev/null
            end
        end
        set -g __piton_line (math $__piton_line + 1)
        return 0
    end

    function __piton_exit --on-event fish_exit
        if test $__piton_used -eq 1; and test -x "$__piton_program"
            $__piton_program shell end --session $__piton_session --pid $fish_pid </dev/null >/dev/null
        end
    end
end
