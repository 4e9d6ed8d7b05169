# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by lab/run: one boot of the host under test.

# What the host under test reads when it is up, and where it leaves the exit code.
prepare_control() {
    local path=$script
    mkdir "$work/control"
    case $script in
    "$checkout"/*) path=/vfpass/${script#"$checkout"/} ;;
    *) cp "$script" "$work/control/script"; path=/lab/control/script ;;
    esac
    printf '%s\0' "$path" "${script_arguments[@]}" >"$work/control/command"
    # A little earlier than our own deadline, so that there is time left to save the logs.
    echo $((timeout > 40 ? timeout - 20 : timeout)) >"$work/control/deadline"
    [ "$daemons" = monolithic ] || echo virtqemud >"$work/control/daemon"
    mkfifo "$work/output"
}

share_arguments() {
    local tag=$1 path=$2 model=none
    shift 2
    # Quotes commas as QEMU wants them.
    arguments+=(-fsdev "local,id=$tag,path=${path//,/,,},security_model=$model,multidevs=remap$*"
        -device "virtio-9p-pci,fsdev=$tag,mount_tag=$tag")
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

# -nodefaults and no -netdev: the machine has no network at all.
# Without tsc=reliable the clock is the HPET's: a system call, an exit and QEMU's big lock each
# time that the guest's emulator asks for the time, which is half of what it does.
# Without tsc_early_khz the kernel measures the counter by a timer that is emulated late on a busy machine; one boot
# counted 10 ms in 20 s.
# aw-bits is a server's: with QEMU's 39, VFIO cannot map the addresses that OVMF gives to a VF's BARs, and the guest's QEMU ends.
# shellcheck disable=SC2054  # the commas are QEMU's
machine_arguments() {
    local device kernel_options
    kernel_options="console=ttyS0 loglevel=4 panic=-1 mitigations=off cryptomgr.notests intel_iommu=on iommu=pt"
    kernel_options+=" no_timer_check tsc=reliable tsc_early_khz=$("$build/tsc_khz")"
    arguments=(-nodefaults -no-user-config -no-reboot -display none -M q35 -smp 2
        -m "$memory" -accel tcg,thread=multi -cpu max,la57=off
        -device intel-iommu,intremap=on,caching-mode=on,aw-bits=48
        -serial "file:$work/console" -device virtio-serial-pci
        -chardev "file,id=output,path=$work/output"
        -device virtserialport,chardev=output,name=lab.output
        -kernel "$build/kernel/vmlinux" -initrd "$build/host.cpio"
        -append "$kernel_options")
    all_shares
    while read -r -a device; do
        [[ ${device[0]:-} == -* ]] && arguments+=("${device[@]}")
    done <"$lab/machines/$machine" || :
}

# allowed_cores: the numbers of the cores that we may use.
allowed_cores() {
    local range ranges
    IFS=, read -r -a ranges < <(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
    for range in "${ranges[@]}"; do
        seq "${range%-*}" "${range#*-}"
    done
}

# choose_core: sets core to one that no other lab has, or else to any. On two cores, about one in forty starts of guests under
# KVM hung, or took the host under test down: the guest's save area held registers of the host. Probably the reason is
# that QEMU changes a processor's interrupt_request in helper_vmrun and do_vmexit without the lock under which other
# threads set bits there, so that one change undoes the other. On one core neither happens within the other.
choose_core() {
    local lock cores
    mapfile -t cores < <(allowed_cores | shuf)
    for core in "${cores[@]}"; do
        exec {lock}>>"${TMPDIR:-/tmp}/vfpass-lab-core-$UID-$core"
        ! flock --nonblock "$lock" || return 0
        exec {lock}>&-
    done
}

start_machine() {
    local arguments
    machine_arguments
    taskset --cpu-list "$core" "${emulator[@]}" "${arguments[@]}" </dev/null >"$work/qemu" 2>&1 &
    qemu=$!
    # Both ends of a named pipe are opened before either goes on; it ends when QEMU does.
    cat "$work/output" &
    output=$!
}

machine_runs() { kill -0 "$qemu" 2>/dev/null; }

# An emulated boot takes 5 to 20 s. About one in sixty never comes to its first line: the emulator
# spins with the kernel. Such a machine has not begun, so it is started once more, and says so.
boot_deadline=${VFPASS_LAB_BOOT_DEADLINE:-120}
start_machine_that_boots() {
    start_machine
    booted && return
    echo "lab/run: the host under test did not come up within $boot_deadline s; once more" >&2
    stop_machine
    start_machine
    booted || echo "lab/run: nor did it the second time" >&2
}

# booted: false when the machine still runs and has not come up by the deadline.
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
    # Only now: a QEMU that failed to start never opened the pipe.
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
