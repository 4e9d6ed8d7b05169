# Completion of vfpass in bash; bash-completion loads it on demand. `vfpass complete` reads commands, options and names of
# this host from the program itself.
# shellcheck shell=bash

_vfpass() {
    # shellcheck disable=SC2034  # _init_completion sets prev
    local cur prev words cword candidate typed
    _init_completion -n =: || return
    COMPREPLY=()
    _vfpass_typed "${words[@]:1:cword}"
    while IFS=$'\t' read -r candidate _; do
        case $candidate in
        :files) _vfpass_files "$cur" ;;
        :directories) _vfpass_files "$cur" -d ;;
        *) COMPREPLY+=("$(_vfpass_quoted "$candidate")") ;;
        esac
    done < <("${words[0]}" complete -- "${typed[@]}" 2>/dev/null)
    # Readline replaces only what follows the last `=` or `:`.
    if [[ $cur == --*=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#--*=}")
        cur=${cur#*=}
    fi
    __ltrim_colon_completions "$cur"
}

# _vfpass_typed WORD...: sets typed, the words without the quotes and backslashes of the command line.
_vfpass_typed() {
    local word
    typed=()
    for word in "$@"; do
        word=${word//[\"\']/}
        typed+=("${word//\\/}")
    done
}

# _vfpass_quoted CANDIDATE: as it is inserted; names of VMs can contain spaces. After a quote readline quotes.
_vfpass_quoted() {
    if [[ $cur == [\"\']* || $1 =~ ^[[:alnum:]/:=._,+@-]*$ ]]; then
        printf '%s' "$1"
    else
        printf '%q' "$1"
    fi
}

# _vfpass_files WORD [-d]: adds the files, or directories, that begin with the word's value.
_vfpass_files() {
    # shellcheck disable=SC2034  # _filedir reads it
    local cur=${1#--*=}
    _filedir "${@:2}"
}

complete -F _vfpass vfpass
