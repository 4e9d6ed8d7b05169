# Completion of vfpass in bash; bash-completion loads it on demand. `vfpass complete` reads commands, options and names of
# this host from the program itself.
# shellcheck shell=bash

_vfpass() {
    # shellcheck disable=SC2034  # _init_completion sets prev
    local cur prev words cword candidate
    _init_completion -n =: || return
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        case $candidate in
        :files) _vfpass_files "$cur" ;;
        :directories) _vfpass_files "$cur" -d ;;
        *) COMPREPLY+=("$candidate") ;;
        esac
    done < <("${words[0]}" complete -- "${words[@]:1:cword}" 2>/dev/null)
    # Readline replaces only what follows the last `=` or `:`.
    if [[ $cur == --*=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#--*=}")
        cur=${cur#*=}
    fi
    __ltrim_colon_completions "$cur"
}

# _vfpass_files WORD [-d]: adds the files, or directories, that begin with the word's value.
_vfpass_files() {
    # shellcheck disable=SC2034  # _filedir reads it
    local cur=${1#--*=}
    _filedir "${@:2}"
}

complete -F _vfpass vfpass
