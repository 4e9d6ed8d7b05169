# Sourced by the tests of vfpass verify: each has a verify_json of its own that runs it; these ask the report.
# shellcheck shell=bash disable=SC2154  # last_output is what lib.sh's checks leave

# Guests that have to share the processor answer late.
export AGENT_TIMEOUT=240
document=''

# verified EXIT NAME [OPTION...]: a check; the report is kept for the others.
verified() {
    local wanted=$1 name=$2
    shift 2
    expect_exit "$wanted" "$name" verify_json "$@"
    document=$last_output
}

# member FILTER: of that report.
member() { jq -r "$1" <<<"$document"; }

# finding KEY FIELD: of the first check with this key that has not passed, or else of the first.
finding() {
    jq -r --arg key "$1" "[.findings[] | select(.key == \$key)] |
        (map(select(.result != \"passed\")) + .)[0].$2" <<<"$document"
}

# seen KEY RESULT WORDS: this check came out so, and says so.
seen() {
    expect_equal "$1: $2" "$2" "$(finding "$1" result)"
    expect_contains "it says what it saw" "$3" finding "$1" seen
}

# broken KEY WORDS [ENTRY]: it is this link that is broken (of this entry), it says so, and nothing behind it
# was tried.
broken() {
    local subjects='.key'
    [ -z "${3:-}" ] || subjects='"\(.key) \(.entry)"'
    expect_equal "$1 is the broken link" "$1${3:+ $3}" "$(member "[.findings[] |
        select(.result == \"failed\" or .result == \"not_observable\") | $subjects] | unique | join(\", \")")"
    expect_contains "it says what it saw" "$2" finding "$1" seen
    expect_equal "and what to do" string "$(finding "$1" 'remedy | type')"
}
