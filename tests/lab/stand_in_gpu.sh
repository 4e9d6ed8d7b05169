# The lab's stand-in GPU (lab/gpu) with the unchanged probe: the identity of an H100, resets and orders; with its driver and its libcuda,
# memory is allocated, filled, checked and exported as DMA-BUF. A byte that reads wrong is found. The host finds it by its class, and names its
# holder.
# covers: src/doctor/gpu_checks.cpp src/host/holders/vfio_holders.cpp
# covers: src/probe/gpu src/probe/program/gpu_selftest_command.cpp lab/gpu lab/connectx/window.c
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

name='Stand-in GPU of the lab, no NVIDIA hardware'
probe=/vfpass/build/libexec/vfpass-probe
export LD_LIBRARY_PATH=/lab/build/gpu

# order ORDER...: gives the GPU an order (lab/gpu/README.md).
order() { sh /vfpass/lab/connectx/control "$gpu" "$@"; }

# from_lspci PATTERN: the first match in the GPU's own lines.
from_lspci() { lspci -vvnns "$gpu" | grep -oE -m1 "$1"; }

# byte OFFSET [VALUE]: reads a byte of the memory, or writes one, through the BAR.
byte() {
    python3 - "$pci_devices/$gpu/resource2" "$@" <<'PYTHON'
import mmap, os, sys
memory = mmap.mmap(os.open(sys.argv[1], os.O_RDWR | os.O_SYNC), 1 << 26)
if len(sys.argv) > 3:
    memory[int(sys.argv[2])] = int(sys.argv[3])
else:
    print(memory[int(sys.argv[2])])
PYTHON
}

gpu_on_node() { # NODE
    local device
    for device in "$pci_devices"/*; do
        [ "$(cat "$device/class")" = 0x030200 ] && [ "$(cat "$device/numa_node")" = "$1" ] && basename "$device"
    done
}

section "the device"
gpu=$(gpu_on_node 0)
require "there is a GPU on node 0" test -n "$gpu"
expect_equal "vendor and device" "[10de:2330]" "$(from_lspci '\[10de:2330\]')"
expect_equal "the board" "[10de:16c1]" "$(from_lspci '\[10de:16c1\]')"
expect_equal "BAR0 and the memory are 64 bits wide and prefetchable" 3 \
    "$(lspci -vvnns "$gpu" | grep -c 'Region [024]: Memory at .* (64-bit, prefetchable)')"
expect_equal "its memory" "Region 2: 64M" "$(lspci -vvs "$gpu" | sed -n 's/.*\(Region 2:\).*size=\(.*\)\]/\1 \2/p')"
expect_equal "the link is at its limit" "32 GT/s 16 32 GT/s 16" "$(cd "$pci_devices/$gpu" &&
    cat current_link_speed current_link_width max_link_speed max_link_width | sed 's/32.0 GT.s PCIe/32 GT\/s/' | xargs)"
expect_contains "the function can be reset" flr cat "$pci_devices/$gpu/reset_method"
echo 1 >"$pci_devices/$gpu/enable"
expect "its memory is written" byte 5000 85
expect_equal "and read" 85 "$(byte 5000)"
expect "a byte is poisoned" order poison 5000
expect_equal "whoever reads it gets its complement" 170 "$(byte 5000)"
order poison off >/dev/null
expect_equal "what is stored is unchanged" 85 "$(byte 5000)"
before=$(order resets)
echo 1 >"$pci_devices/$gpu/reset"
expect_equal "a reset clears the memory" 0 "$(byte 5000)"
expect_equal "the device has counted it" $((before + 1)) "$(order resets)"
expect "its link loses lanes" order width 4
expect_equal "the kernel sees them, and what the device can do" "4 16" "$(cd "$pci_devices/$gpu" && cat current_link_width max_link_width | xargs)"
expect "it has all of them again" order width 16
refuse "a link has no 3 lanes" order width 3
refuse "nor 32" order width 32
refuse "an unknown order" order heat
refuse "an offset behind the memory" order poison 67108864

section "the probe without the driver"
said() { # EXIT NAME COMMAND...: a check that keeps the document
    expect_exit "$@"
    document=$last_output
}
member() { jq -r "$1" <<<"$document"; }
said 0 "inventory" "$probe" inventory
expect_equal "CUDA finds no GPU" "100 module-not-loaded" "$(member '.gpus.libcuda | "\(.status) \(.code)"')"
expect_equal "PCI shows both" 2 "$(member '.gpus.devices | length')"

section "the driver, libcuda and the probe"
expect "the driver is loaded" insmod /lab/build/gpu/driver/stand_in_gpu.ko
expect_equal "it has both GPUs" "/dev/stand-in-gpu0 /dev/stand-in-gpu1" "$(echo /dev/stand-in-gpu*)"
said 0 "inventory" "$probe" inventory
expect "it matches the schema" /vfpass/build/tests/lab/validate-json /vfpass/docs/json/probe.schema.json <<<"$document"
mine=".gpus.devices[] | select(.pci == \"$gpu\")"
expect_equal "CUDA has the GPU, by a name that says what it is" "$name" "$(member "$mine | .name")"
expect_equal "nothing claims to be NVIDIA's driver" "stand-in-gpu  false" \
    "$(member "[($mine | .driver), .gpus.driver_version, .gpus.nvidia_peermem.loaded] | map(tostring) | join(\" \")")"
expect_equal "all memory is behind the BAR" "67108864 67108864" "$(member "$mine | [.memory_bytes, .bar1_bytes] | map(tostring) | join(\" \")")"
said 0 "the self-test" "$probe" gpu-selftest --gpu "$gpu" --bytes 8M --rounds 1
expect_equal "memory is filled and checked at every alignment" true "$(member .passed)"
expect_equal "it is exported as DMA-BUF" true "$(member .dma_buf.exported)"
took "the self-test"
expect "a byte is poisoned" order poison 1000000
said 4 "the self-test finds it" "$probe" gpu-selftest --gpu "$gpu" --bytes 8M --rounds 1
expect_equal "and still exports" true "$(member .dma_buf.exported)"
said 1 "more memory than there is" "$probe" gpu-selftest --gpu "$gpu" --bytes 128M
expect_said "the error is CUDA's" "CUDA_ERROR_OUT_OF_MEMORY"
expect "the driver is removed" rmmod stand_in_gpu

section "doctor finds the GPUs by their class"
# What `enable` of the first section has counted would look like a user.
echo 0 >"$pci_devices/$gpu/enable"
install_vfpass
require "mlx5_core loads" load_mlx5
start_libvirt
vfpass doctor --json >/tmp/doctor.json
# of_gpu KEY: result and observation of the check for the GPU.
of_gpu() {
    jq -r --arg key "$1" --arg gpu "$gpu" '.findings[] | select(.key == $key and .subject == $gpu) | "\(.result) \(.seen)"' /tmp/doctor.json
}
expect_equal "both GPUs are checked" "$gpu $(gpu_on_node 1)" \
    "$(jq -r '[.findings[] | select(.key == "gpu-reset").subject] | sort | join(" ")' /tmp/doctor.json)"
expect_contains "the memory is behind a BAR" "passed 64 MiB" of_gpu gpu-bar
expect_contains "the GPU can be reset" "passed flr" of_gpu gpu-reset
expect_contains "no driver of the host has it" passed of_gpu gpu-driver
expect_contains "it is not the host's console" passed of_gpu gpu-console
expect_equal "without an NVSwitch no mapping has to decide about NVLink" "waived no NVSwitch among the PCI functions" \
    "$(jq -r '.findings[] | select(.key == "gpu-nvlink") | "\(.result) \(.seen)"' /tmp/doctor.json)"

section "a program of the host that has the GPU"
define_guest train0
settle train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.before
printf 'version: 1\nvm: train0\ntopology: flat\ngpus:\n  - {name: gpu0, pci: "%s"}\n' "$gpu" >"$vms/train0.yaml"
expect "hook install" vfpass hook install
expect "the GPU is bound to vfio-pci" bind_to "$gpu" vfio-pci
sleep 600 <>"/dev/vfio/$(iommu_group_of "$gpu")" &
user=$!
wait_until 60 grep -q sleep "/proc/$user/comm"
expect_exit 5 "attach is refused" vfpass attach train0
expect_said "the error names the GPU" "$gpu"
expect_said "and the program that has its group open" "sleep (pid $user) has it open through VFIO"
expect_said "and the remedy" "stop the program that uses it"
expect_exit 5 "check refuses too" vfpass check train0
expect "no lease is left" no_lease
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the XML is unchanged" /tmp/xml.before /tmp/xml.after
kill "$user"
wait "$user" 2>/dev/null
expect "attach without the program" vfpass attach train0
expect "status reports no drift" vfpass status train0
expect "detach" vfpass detach train0
expect_equal "the GPU is on the driver that it had" vfio-pci "$(driver_of "$gpu")"
expect "no lease is left" no_lease
finish
