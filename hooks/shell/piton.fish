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

    # Runs before each line. A function of the user's may have the name of each builtin.
    function __piton_preexec --on-event fish_preexec
        __piton_only_reads "$argv[1]"; and return 0
        if not builtin test -f "$__piton_program" -a -x "$__piton_program"
            # The next piton lists the line as one that ran without a checkpoint.
            /bin/sh -c '@NOTE@' </dev/null
            return 0
        end
        # No other process knows this shell's functions.
        set -l doubt
        for word in (builtin string match -ar '[A-Za-z0-9_.:+-]+' -- $argv[1])
            if __piton_is_users $word
                set doubt --doubt
                break
            end
        end
        builtin printf '%s' "$argv[1]" | $__piton_program shell before --session $__piton_session --pid $fish_pid \
            --line $__piton_line --cwd "$PWD" --cannot-cancel $doubt >/dev/null
        set -l code $pipestatus[2]
        switch "$code"
            case 0
            case 3
                set -g __piton_asked 1
                set -g __piton_used 1
            case '*'
                builtin echo "piton: it gave no answer ($code), so this line runs without a checkpoint" >&2
        end
        return 0
    end

    # True for a line of one simple command that only reads, by its name: nothing in it stands for anything else.
    function __piton_only_reads
        builtin string match -qr '[^A-Za-z0-9_./~:,@%+*? -]| --o' -- $argv[1]; and return 1
        set -l words (builtin string split -n ' ' -- $argv[1])
        set -l word "$words[1]"
        __piton_is_users "$word"; and return 1
        switch "$word"
            case git
                # A file may have the name of an option.
                builtin string match -qr '[*?]' -- $argv[1]; and return 1
                set word git-$words[2]
            case man jobs
                builtin string match -qr '[*?-]' -- $argv[1]; and return 1
        end
        builtin contains -- "$word" $__piton_reads
    end

    # True for a function that is not fish's own.
    function __piton_is_users
        builtin functions -q -- $argv[1]; or return 1
        set -l origin (builtin functions --details -- $argv[1])
        builtin string match -q -- "$__fish_data_dir/*" "$origin"; and return 1
        builtin string match -q -- 'embedded:*' "$origin"; and return 1
        return 0
    end

    # Runs after each line.
    function __piton_postexec --on-event fish_postexec
        set -l code $status
        if builtin test "$__piton_asked" = 1
            set -g __piton_asked 0
            if builtin test -f "$__piton_program" -a -x "$__piton_program"
                $__piton_program shell after --session $__piton_session --pid $fish_pid --line $__piton_line \
                    --exit $code </dev/null >/dev/null
            end
        end
        set -g __piton_line (builtin math $__piton_line + 1)
        return 0
    end

    function __piton_exit --on-event fish_exit
        if builtin test "$__piton_used" = 1 -a -x "$__piton_program"
            $__piton_program shell end --session $__piton_session --pid $fish_pid </dev/null >/dev/null
        end
    end
end
