# shellcheck shell=bash
# Sourced by lib.sh: checks are counted and print the output of a command that fails. finish fails if
# nothing was checked.

checks_passed=0 checks_failed=0 last_output='' last_code=0
section_started=$SECONDS

section() {
    printf '\n== %s (at %s s)\n' "$1" "$SECONDS"
    section_started=$SECONDS
}

# took WHAT: prints the time since the section began.
took() { printf '   %s took %s s\n' "$1" "$((SECONDS - section_started))"; }

pass() {
    checks_passed=$((checks_passed + 1))
    printf 'ok   %s\n' "$1"
}

# flunk NAME [COMMAND...]: prints the command, its output and its exit code.
flunk() {
    local name=$1
    shift
    checks_failed=$((checks_failed + 1))
    printf 'FAIL %s\n' "$name"
    [ $# = 0 ] || printf '     command: %s\n     exit code: %s\n' "$*" "$last_code"
    [ -z "$last_output" ] || printf '     | %s\n' "${last_output//$'\n'/$'\n'     | }"
}

# capture COMMAND...: sets last_output (both streams) and last_code, never fails. The command
# runs in a subshell, so its assignments are lost.
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
        flunk "$name (expected exit code $wanted)" "$@"
    fi
}

# refuse NAME COMMAND...: the command fails. A signal or a missing program does not count as a refusal.
refuse() {
    local name=$1
    shift
    capture "$@"
    if [ "$last_code" -gt 0 ] && [ "$last_code" -lt 124 ]; then
        pass "$name"
    else
        flunk "$name (expected a refusal)" "$@"
    fi
}

# expect_contains NAME TEXT COMMAND...: the command succeeds and its output contains TEXT.
expect_contains() {
    local name=$1 text=$2
    shift 2
    capture "$@"
    if [ "$last_code" = 0 ] && [[ $last_output == *"$text"* ]]; then
        pass "$name"
    else
        flunk "$name (expected \"$text\")" "$@"
    fi
}

expect_equal() {
    local name=$1 wanted=$2 seen=$3
    last_output=''
    if [ "$wanted" = "$seen" ]; then
        pass "$name"
    else
        flunk "$name (expected \"$wanted\", got \"$seen\")"
    fi
}

# expect_said NAME TEXT: the output of the previous check contains TEXT, whatever its exit code was.
expect_said() {
    if [[ $last_output == *"$2"* ]]; then pass "$1"; else flunk "$1 (expected \"$2\")"; fi
}

expect_same_file() { expect "$1" diff -u -- "$2" "$3"; }

# wait_until SECONDS COMMAND...: runs COMMAND without output until it succeeds or the time is over.
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
