# Completion of vfpass in fish. `vfpass complete` reads commands, options and names of this host from the program itself.

# __vfpass_paths files|directories BEFORE START: paths that begin with START, shown with BEFORE in its place. A name with a line break or a
# tab is left out, because a candidate ends there; __fish_complete_path of fish 4 makes several of it.
function __vfpass_paths --argument-names kind before start
    for path in "$start"*
        string match --quiet --regex '[\n\t]' -- "$path"; and continue
        set -l shown $before(string sub --start (math (string length -- "$start") + 1) -- "$path")
        if test -d "$path"
            printf '%s/\n' $shown
        else if test $kind = files
            printf '%s\n' $shown
        end
    end
end

function __vfpass_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    # Without the quotes of the line; one that is still open is closed for that.
    set -l value (for close in '' "'" '"'
        string unescape -- "$current$close" 2>/dev/null; and break
    end)
    for line in ($words[1] complete -- $words[2..] "$value" 2>/dev/null)
        switch $line
            case ':files' ':directories'
                set -l begun (string replace --regex '^--[^=]*=' '' -- "$value")
                set -l start $begun
                if string match --quiet --regex '^(--[^=]*=)?~/' -- "$current"
                    set start $HOME(string sub --start 2 -- "$begun")
                end
                __vfpass_paths (string sub --start 2 -- $line) "$begun" "$start"
            case '*'
                printf '%s\n' $line
        end
    end
end

complete --command vfpass --no-files --arguments '(__vfpass_complete)'
