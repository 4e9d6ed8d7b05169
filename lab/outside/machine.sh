# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by lab/run: one boot of the host under test.

# Fills the directory from which the host under test reads its task and where it writes the exit code.
prepare_control() {
    local path=$script
    mkdir "$work/control"
    case $script in
    "$checkout"/*) path=/vfpass/${script#"$checkout"/} ;;
    *) cp "$script" "$work/control/script"; path=/lab/control/script ;;
    esac
    printf '%s\0' "$path" "${script_arguments[@]}" >"$work/control/command"
    # Earlier than our own deadline, to leave time to save the logs.
    echo $((timeout > 40 ? timeout - 20 : timeout)) >"$work/control/deadline"
    [ "$daemons" = monolithic ] || echo virtqemud >"$work/control/daemon"
    mkfifo "$work/output"
}

# share_arguments TAG PATH [OPTIONS]: the shares are functions of one slot, which are one IOMMU group, so that the numbers of the
# groups of VFs do not depend on the number of shares.
share_arguments() {
    local tag=$1 path=$2 model=none address
    shift 2
    address=$(printf '%x.%x' $((0x1e - share_count / 8)) $((share_count % 8)))
    share_count=$((share_count + 1))
    # QEMU escapes a comma by doubling it.
    arguments+=(-fsdev "local,id=$tag,path=${path//,/,,},security_model=$model,multidevs=remap$*"
        -device "virtio-9p-pci,fsdev=$tag,mount_tag=$tag,addr=$address,multifunction=on")
}

all_shares() {
    local share number=0
    share_arguments root "$build/root" ,readonly=on
    share_arguments checkout "$checkout" ,readonly=on
    share_arguments build "$build" ,readonly=on
    share_arguments control "$work/control"
    : >"$work/control/shares"
    if [ -n "$state" ]; then
        share_arguments state "$state"
        echo 'state /lab/state rw,cache=mmap' >>"$work/control/shares"
    fi
    for share in "${shares[@]}"; do
        share_arguments "share$number" "$(realpath -e -- "${share%%:*}")" ,readonly=on
        echo "share$number ${share#*:} ro,cache=loose" >>"$work/control/shares"
        number=$((number + 1))
    done
}

# -nodefaults without -netdev: the machine has no network. It has one processor, as the core that it is pinned to: with two, each of which waits for the
# other while that one does not run, a test with a guest took twice the processor time. A machine with NUMA nodes overrides it.
# shellcheck disable=SC2054  # the commas are QEMU's
machine_arguments() {
    local device number share_count=0 processors=1
    number=$(host_number)
    [ "${cores:-one}" = one ] || processors=2
    arguments=(-nodefaults -no-user-config -no-reboot -display none "${emulated_machine[@]}" -smp "$processors"
        -m "$memory" -accel tcg,thread=multi
        -serial "file:$work/console" -device virtio-serial-pci
        -chardev "file,id=output,path=$work/output"
        -device virtserialport,chardev=output,name=lab.output
        -kernel "$build/kernel/vmlinux" -initrd "$build/host.cpio"
        -append "loglevel=4 panic=-1 mitigations=off cryptomgr.notests $(kernel_options)")
    all_shares
    link_arguments
    while read -r -a device; do
        [[ ${device[0]:-} == -* ]] || continue
        device=("${device[@]//@HOST@/"$number"}")
        device=("${device[@]//@OTHER@/$((3 - number))}")
        device=("${device[@]//@LINK@/"$link"}")
        arguments+=("${device[@]//@CONTROL@/"$work/control"}")
    done <"$lab/machines/$machine"
}

# allowed_cores: prints the numbers of the cores in our affinity mask.
allowed_cores() {
    local range ranges
    IFS=, read -r -a ranges < <(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
    for range in "${ranges[@]}"; do
        seq "${range%-*}" "${range#*-}"
    done
}

# choose_core: sets core to one that the fewest other labs use; with `--cores all`, to the list of all. On two
# cores, about one in forty starts of guests under KVM hung or crashed the host under test: the guest's save area contained registers of the host. The probable
# cause: QEMU changes a processor's interrupt_request in helper_vmrun and do_vmexit without the lock under which other
# threads set bits in it, so an update may get lost. On one core the two do not run at the same time.
choose_core() {
    local lock allowed labs
    mapfile -t allowed < <(allowed_cores | shuf)
    if [ "${cores:-one}" = all ]; then
        core=$(IFS=, && echo "${allowed[*]}")
        return
    fi
    for labs in {1..8}; do
        for core in "${allowed[@]}"; do
            exec {lock}>>"${TMPDIR:-/tmp}/vfpass-lab-core-$UID-$core-$labs"
            ! flock --nonblock "$lock" || return 0
            exec {lock}>&-
        done
    done
}

start_machine() {
    local arguments
    machine_arguments
    # The model of a card is no device of QEMU but a library that is loaded into it.
    taskset --cpu-list "$core" env "LD_PRELOAD=$build/connectx/connectx.so" "$emulator" "${arguments[@]}" \
        </dev/null >"$work/qemu" 2>&1 &
    qemu=$!
    # Opening a named pipe blocks until both ends are open; cat ends when QEMU does.
    cat "$work/output" &
    output=$!
}

machine_runs() { kill -0 "$qemu" 2>/dev/null; }

# An emulated boot takes 5 to 20 s. About one in sixty hangs before its first line: the emulator spins with the
# kernel. Such a machine has not run the script yet, so it is restarted once, with a message.
boot_deadline=${VFPASS_LAB_BOOT_DEADLINE:-120}
start_machine_that_boots() {
    start_machine
    booted && return
    echo "lab/run: the host under test did not boot within $boot_deadline s: retrying" >&2
    stop_machine
    start_machine
    booted || echo "lab/run: the host under test did not boot at the second attempt either" >&2
}

# booted: waits for the boot; fails if the machine is still running but has not booted by the deadline.
booted() {
    local end=$((SECONDS + boot_deadline))
    while machine_runs && [ ! -e "$work/control/booted" ]; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}

stop_machine() {
    kill -KILL "$qemu" 2>/dev/null || :
    wait "$qemu" 2>/dev/null || :
    qemu=''
    # Unblocks cat if QEMU failed to start and never opened the pipe.
    : <>"$work/output"
    wait "$output" || :
}

wait_for_machine() {
    local end=$((SECONDS + timeout))
    while machine_runs && [ "$SECONDS" -lt "$end" ]; do
        sleep 0.2
    done
    ! machine_runs || too_late=yes
    [ -z "${too_late:-}" ] || kill -KILL "$qemu"
    stop_machine
    cat "$work/qemu" >&2
}
