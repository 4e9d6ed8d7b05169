# Completion of vfpass in bash. `vfpass complete` reads commands, options and names of this host from the program itself.
# Whoever names a VM or a file chooses its characters, so everything is quoted for the quotes that are open, and nothing that
# was typed or found is evaluated.
# shellcheck shell=bash

_vfpass() {
    local words=() before='' style='' tilde='' expands='' redirects='' candidate
    COMPREPLY=()
    _vfpass_parse "${COMP_LINE:0:COMP_POINT}"
    [[ ! $expands ]] || return
    if [[ $redirects ]]; then
        _vfpass_files
        return
    fi
    while IFS=$'\t' read -r candidate _; do
        case $candidate in
        :files) _vfpass_files ;;
        :directories) _vfpass_files -d ;;
        *) _vfpass_add "$candidate" ;;
        esac
    done < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
}

# _vfpass_parse LINE: sets words, as the shell would pass them, the last one incomplete; expands, if that has an expansion or an
# operator, whose result is unknown; tilde, if it begins with one that the shell expands; redirects, if it is a file of a
# redirection. Readline replaces what follows the quote that is open at the end, or else the last character of COMP_WORDBREAKS
# outside of quotes: before is the value up to there, style the quote.
_vfpass_parse() {
    local line=$1 value='' begun='' open='' outside='' char next i
    for ((i = 0; i < ${#line}; i++)); do
        char=${line:i:1} next=${line:i+1:1}
        case $open$char in
        [[:space:]])
            if [[ $begun && ! $redirects ]]; then
                words+=("$value")
            fi
            [[ ! $begun ]] || redirects=''
            value='' begun='' before='' tilde='' expands=''
            continue
            ;;
        [\<\>]) redirects=1 value='' begun='' before='' tilde=''; continue ;;
        "''" | '""' | "\$'") open='' before=$outside ;;
        "'" | \") open=$char outside=$before before=$value ;;
        \\ | \"\\)
            if [[ ! $open || $next == [\\\$\`\"] ]]; then
                char=$next
                ((i++))
            fi
            value+=$char
            ;;
        \$\\)
            [[ $next == \\ ]] || expands=1 # other escapes, and quotes that readline takes for the end
            value+=$next
            ((i++))
            ;;
        \$)
            case $next in
            "'") open=\$ ;;
            \") open=\" ;;
            *) expands=1 value+=$char ;;
            esac
            if [[ $open ]]; then
                outside=$before before=$value
                ((i++))
            fi
            ;;
        \` | \"[\$\`] | [\(\)\;\&\|]) expands=1 value+=$char ;;
        *)
            [[ $open || $begun || $char != "~" ]] || tilde=1
            value+=$char
            [[ $open || $COMP_WORDBREAKS != *"$char"* ]] || before=$value
            ;;
        esac
        begun=1
    done
    style=$open
    words+=("$value")
}

# _vfpass_files [-d]: adds the files, or directories, that begin with the word's value. Not with compgen or readline's own
# completion: the former separates names by newlines, which they can contain, and the latter leaves `$` and backquotes as they are
# below `~` (bash_quote_filename in bash's bashline.c asks for a file of that name before it expands the tilde).
_vfpass_files() {
    local word=${words[-1]} value path file
    value=$word
    [[ $word != --*=* ]] || value=${word#*=}
    path=$value
    if [[ $tilde ]]; then
        [[ $value == \~/* ]] || return 0
        path=$HOME/${value:2}
    fi
    for file in "$path"*; do
        if [[ -d $file ]]; then
            compopt -o nospace
            file+=/
        elif [[ ${1-} || (! -e $file && ! -L $file) ]]; then
            continue
        fi
        _vfpass_add "$word${file:${#path}}"
    done
}

# _vfpass_add CANDIDATE
_vfpass_add() {
    [[ $1 == "$before"* ]] || return 0
    local rest=${1#"$before"} lead=''
    if [[ $tilde && ! $before && ! $style ]]; then
        lead=${rest%%/*}
        rest=${rest#"$lead"}
    fi
    COMPREPLY+=("$lead$(_vfpass_quoted "$rest")")
}

# _vfpass_quoted TEXT: as it is inserted, with the closing quote: readline adds it only if the text does not end with it, which a
# quoted quote may. Within double quotes and $'' bash would expand `!` from the history.
_vfpass_quoted() {
    local text=$1 bang='"'"'!'"'"'
    case $style in
    "'") text=${text//"'"/"'\\''"} ;;
    \")
        text=${text//\\/\\\\}
        text=${text//\"/\\\"}
        text=${text//\$/\\\$}
        text=${text//\`/\\\`}
        text=${text//!/"$bang"}
        ;;
    \$)
        text=${text//\\/\\\\}
        text=${text//"'"/\\x27}
        text=${text//!/\\x21}
        ;;
    *) [[ $text =~ ^[[:alnum:]/:=._,+@-]*$ ]] || printf -v text '%q' "$text" ;;
    esac
    local quote=${style/\$/"'"}
    text+=$quote
    # Of two equal quotes, the one that is open and the first one of the text, readline keeps one (insert_match in complete.c).
    [[ ! $quote || $text != "$quote"* ]] || text=$quote$text
    printf '%s' "$text"
}

complete -F _vfpass vfpass
