# Completion of vfpass in fish. `vfpass complete` reads commands, options and names of this host from the program itself.

function __vfpass_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    for line in ($words[1] complete -- $words[2..] "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (string replace --regex '^--[^=]*=' '' -- "$current")
            case ':directories'
                __fish_complete_directories (string replace --regex '^--[^=]*=' '' -- "$current")
            case '*'
                echo $line
        end
    end
end

complete --command vfpass --no-files --arguments '(__vfpass_complete)'
