# shellcheck shell=bash
# Every script that lab/run runs in the host under test sources this first:
#     source "$(dirname "$0")/lib.sh"        (in lab/)   or   source /vfpass/lab/lib.sh
# Checks are printed and counted; finish sets the exit code.

lab_directory=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034  # for the scripts that source this
lab_build=/lab/build

# shellcheck source=SCRIPTDIR/architectures/amd64.sh
source "$lab_directory/architectures/$(dpkg --print-architecture).sh"
# shellcheck source=SCRIPTDIR/lib/checks.sh
source "$lab_directory/lib/checks.sh"
# shellcheck source=SCRIPTDIR/lib/devices.sh
source "$lab_directory/lib/devices.sh"
# shellcheck source=SCRIPTDIR/lib/libvirt.sh
source "$lab_directory/lib/libvirt.sh"
# shellcheck source=SCRIPTDIR/lib/guests.sh
source "$lab_directory/lib/guests.sh"
# shellcheck source=SCRIPTDIR/lib/agent.sh
source "$lab_directory/lib/agent.sh"
# shellcheck source=SCRIPTDIR/lib/link.sh
source "$lab_directory/lib/link.sh"
# shellcheck source=SCRIPTDIR/lib/real_guests.sh
source "$lab_directory/lib/real_guests.sh"
# shellcheck source=SCRIPTDIR/lib/systemd.sh
source "$lab_directory/lib/systemd.sh"
