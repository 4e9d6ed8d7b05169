# Completion of vfpass in fish. `vfpass complete` reads commands, options and names of this host from the program itself.

function __vfpass_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    # Without the quotes of the line; one that is still open is closed for that.
    set -l value (for close in '' "'" '"'
        string unescape -- "$current$close" 2>/dev/null; and break
    end)
    for line in ($words[1] complete -- $words[2..] "$value" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (string replace --regex '^--[^=]*=' '' -- "$value")
            case ':directories'
                __fish_complete_directories (string replace --regex '^--[^=]*=' '' -- "$value")
            case '*'
                printf '%s\n' $line
        end
    end
end

complete --command vfpass --no-files --arguments '(__vfpass_complete)'
