# Sourced by the tests of vfpass verify. Each test defines verify_json, which runs it; these functions check the report.
# shellcheck shell=bash disable=SC2154  # last_output is what lib.sh's checks leave

# Guests that share the processor respond slowly.
export AGENT_TIMEOUT=240
document=''

# verified EXIT NAME [OPTION...]: a check that keeps the report for the functions below.
verified() {
    local wanted=$1 name=$2
    shift 2
    expect_exit "$wanted" "$name" verify_json "$@"
    document=$last_output
}

# member FILTER: a member of that report.
member() { jq -r "$1" <<<"$document"; }

# finding KEY FIELD: a field of the first finding with this key that has not passed, or else of the first.
finding() {
    jq -r --arg key "$1" "[.findings[] | select(.key == \$key)] |
        (map(select(.result != \"passed\")) + .)[0].$2" <<<"$document"
}

# rdma_up GUEST ADDRESS...: gives these addresses to the guest's VFs, in the order of their places, and waits for their links. It
# prints the RDMA devices' files. MTU 9000 gives an RDMA MTU of 4096.
rdma_up() {
    # shellcheck disable=SC2016  # the guest's shell expands it
    guest_shell "$1" "set -- ${*:2}"'; ip link set lo up
        for vf in /sys/bus/pci/drivers/mlx5_core/0*; do
            until [ -d "$vf/net" ] && [ -d "$vf/infiniband" ]; do usleep 200000; done
            netdev=$(ls "$vf/net")
            ip link set "$netdev" mtu 9000 up || exit
            ip address show dev "$netdev" | grep -q "inet $1/" || ip address add "$1/24" dev "$netdev" || exit
            until [ "$(cat "/sys/class/net/$netdev/operstate")" = up ]; do usleep 200000; done
            shift
        done
        ls /dev/infiniband'
}

# seen KEY RESULT WORDS: the check has this result, and its finding contains WORDS.
seen() {
    expect_equal "$1: $2" "$2" "$(finding "$1" result)"
    expect_contains "$1: the finding is printed" "$3" finding "$1" seen
}

# broken KEY WORDS [ENTRY]: only this check (of this entry) failed, its finding contains WORDS, and no later check
# ran.
broken() {
    local subjects='.key'
    [ -z "${3:-}" ] || subjects='"\(.key) \(.entry)"'
    expect_equal "$1 is the only failed check" "$1${3:+ $3}" "$(member "[.findings[] |
        select(.result == \"failed\" or .result == \"not_observable\") | $subjects] | unique | join(\", \")")"
    expect_contains "$1: the finding is printed" "$2" finding "$1" seen
    expect_equal "$1: there is a remedy" string "$(finding "$1" 'remedy | type')"
}
