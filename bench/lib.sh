# shellcheck shell=bash disable=SC2154
# Sourced by the benchmarks, which set samples (a directory) and measured_log: functions for measurements and for
# statistics.

# started_processes: sets started, the kernel's count of processes and threads since boot. Starts no process
# itself.
started_processes() {
    local key value _
    while read -r key value _; do
        [ "$key" != processes ] || started=$value
    done </proc/stat
}

# measure COMMAND...: sets elapsed_us and processes; the output goes to $measured_log. Exits if the command fails.
measure() {
    local before begin end started code=0
    started_processes
    before=$started begin=${EPOCHREALTIME//[!0-9]/}
    "$@" >>"$measured_log" 2>&1 || code=$?
    end=${EPOCHREALTIME//[!0-9]/}
    started_processes
    elapsed_us=$((end - begin)) processes=$((started - before))
    [ "$code" = 0 ] || {
        echo "bench: $*: exit code $code" >&2
        tail -n 20 "$measured_log" >&2
        exit 1
    }
}

# sample SERIES: records the last measurement, one value on each line.
sample() {
    echo "$elapsed_us" >>"$samples/$1.us"
    echo "$processes" >>"$samples/$1.processes"
}

# median, minimum, maximum FILE
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { m = int((NR + 1) / 2); print NR % 2 ? v[m] : (v[m] + v[m + 1]) / 2 }'; }
minimum() { sort -n "$1" | head -n 1; }
maximum() { sort -n "$1" | tail -n 1; }

# seconds MICROSECONDS: with three decimal places.
seconds() { awk -v us="$1" 'BEGIN { printf "%.3f", us / 1e6 }'; }

# spread SERIES: "median (minimum-maximum)" in seconds.
spread() {
    local file=$samples/$1.us
    printf '%s (%s-%s)' "$(seconds "$(median "$file")")" "$(seconds "$(minimum "$file")")" \
        "$(seconds "$(maximum "$file")")"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
