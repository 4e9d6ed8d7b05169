# shellcheck shell=bash
# Sourced by lib.sh: checks that count, say what they saw when they fail, and an end that
# cannot be taken for success when nothing was checked.

checks_passed=0 checks_failed=0 last_output='' last_code=0
section_started=$SECONDS

section() {
    printf '\n== %s (at %s s)\n' "$1" "$SECONDS"
    section_started=$SECONDS
}

# took WHAT: prints how long it is since the section began.
took() { printf '   %s took %s s\n' "$1" "$((SECONDS - section_started))"; }

pass() {
    checks_passed=$((checks_passed + 1))
    printf 'ok   %s\n' "$1"
}

# flunk NAME [COMMAND...]: prints what ran, what it said and how it ended.
flunk() {
    local name=$1
    shift
    checks_failed=$((checks_failed + 1))
    printf 'FAIL %s\n' "$name"
    [ $# = 0 ] || printf '     command: %s\n     exit code: %s\n' "$*" "$last_code"
    [ -z "$last_output" ] || printf '     | %s\n' "${last_output//$'\n'/$'\n'     | }"
}

# capture COMMAND...: sets last_output (both streams) and last_code, never fails. The command
# runs in a subshell: what it assigns is lost.
capture() {
    last_code=0
    last_output=$("$@" 2>&1) || last_code=$?
}

expect() { expect_exit 0 "$@"; }

# require NAME COMMAND...: expect for what everything after it depends on; a failure ends the test at once.
require() {
    expect "$@"
    [ "$last_code" = 0 ] || finish
}

expect_exit() {
    local wanted=$1 name=$2
    shift 2
    capture "$@"
    if [ "$last_code" = "$wanted" ]; then
        pass "$name"
    else
        flunk "$name (wanted exit code $wanted)" "$@"
    fi
}

# refuse NAME COMMAND...: any exit code but 0, a signal or a missing program is no refusal.
refuse() {
    local name=$1
    shift
    capture "$@"
    if [ "$last_code" -gt 0 ] && [ "$last_code" -lt 124 ]; then
        pass "$name"
    else
        flunk "$name (wanted a refusal)" "$@"
    fi
}

# expect_contains NAME TEXT COMMAND...: succeeds and says TEXT somewhere.
expect_contains() {
    local name=$1 text=$2
    shift 2
    capture "$@"
    if [ "$last_code" = 0 ] && [[ $last_output == *"$text"* ]]; then
        pass "$name"
    else
        flunk "$name (wanted \"$text\")" "$@"
    fi
}

expect_equal() {
    local name=$1 wanted=$2 seen=$3
    last_output=''
    if [ "$wanted" = "$seen" ]; then
        pass "$name"
    else
        flunk "$name (wanted \"$wanted\", saw \"$seen\")"
    fi
}

# expect_said NAME TEXT: about the output of the check just made, whatever its exit code was.
expect_said() {
    if [[ $last_output == *"$2"* ]]; then pass "$1"; else flunk "$1 (wanted \"$2\")"; fi
}

expect_same_file() { expect "$1" diff -u -- "$2" "$3"; }

# wait_until SECONDS COMMAND...: polls, silently, until it succeeds or the time is over.
wait_until() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}

finish() {
    printf '\n%s checks passed, %s failed\n' "$checks_passed" "$checks_failed"
    [ "$checks_failed" = 0 ] && [ "$checks_passed" -gt 0 ]
    exit $?
}
