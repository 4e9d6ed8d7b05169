#pragma once

namespace vfpass::guest {

// What guest-setup has the guest's shell do. Constant texts: what varies comes as arguments, and $0
// is what goes before every path. dash, busybox and bash read them alike.

inline constexpr const char* foldersScript = R"sh(
umask 022
for folder; do [ -d "$0$folder" ] || mkdir -p "$0$folder" || exit 1; done
chmod 0700 "$0/var/lib/vfpass-setup"
)sh";
// Four arguments a file: path, mode, user, group. The new file is beside it, so that a rename
// replaces it in one step and it gets the folder's SELinux label.
inline constexpr const char* installScript = R"sh(
while [ $# -ge 4 ]; do
  file=$0$1
  new=${file%/*}/.${file##*/}.vfpass-new
  chown "$3:$4" "$new" && chmod "$2" "$new" && sync "$new" && mv -f "$new" "$file" || exit 1
  shift 4
done
)sh";
inline constexpr const char* dropNewScript = R"sh(
for path; do file=$0$path; rm -f "${file%/*}/.${file##*/}.vfpass-new"; done
)sh";
inline constexpr const char* removeScript = R"sh(for path; do rm -f "$0$path" || exit 1; done)sh";
inline constexpr const char* forgetScript = R"sh(
rm -f "$0/var/lib/vfpass-setup/originals.json" || exit 1
rmdir "$0/var/lib/vfpass-setup"
exit 0
)sh";
inline constexpr const char* dropFoldersScript = R"sh(
for folder; do rmdir "$0$folder" 2>/dev/null; done
exit 0
)sh";
inline constexpr const char* netplanScript = "netplan generate && netplan apply";
// Pairs: connection's id, interface.
inline constexpr const char* connectionsScript = R"sh(
nmcli connection reload || exit 1
while [ $# -ge 2 ]; do
  nmcli -w 30 connection up id "$1" ifname "$2" || exit 1
  shift 2
done
)sh";
inline constexpr const char* networkdScript = R"sh(
networkctl reload || exit 1
[ $# = 0 ] || networkctl reconfigure "$@"
)sh";
inline constexpr const char* enableScript =
    R"sh(systemctl daemon-reload && systemctl -q enable "$1")sh";
inline constexpr const char* disableScript = R"sh(systemctl -q disable "$1")sh";
// $1 interface, $2 MTU, $3 up or down, $4 arp_announce, $5 arp_ignore (empty: left alone), then
// +ADDRESS and -ADDRESS.
inline constexpr const char* portScript = R"sh(
name=$1 mtu=$2 state=$3 announce=$4 ignore=$5
shift 5
# A network manager may just have done it itself.
shows() { ip -o address show dev "$name" | grep -q -F " $1 "; }
[ -z "$mtu" ] || ip link set dev "$name" mtu "$mtu" || exit 1
for change; do
  case $change in
    +*) ip address add "${change#+}" dev "$name" || shows "${change#+}" || exit 1 ;;
    -*) ip address del "${change#-}" dev "$name" || ! shows "${change#-}" || exit 1 ;;
  esac
done
[ -z "$state" ] || ip link set dev "$name" "$state" || exit 1
settings=$0/proc/sys/net/ipv4/conf/$name
[ -z "$announce" ] || echo "$announce" >"$settings/arp_announce" || exit 1
[ -z "$ignore" ] || echo "$ignore" >"$settings/arp_ignore" || exit 1
)sh";
inline constexpr const char* loadScript = "modprobe nvidia-peermem";
inline constexpr const char* unloadScript = "modprobe -r nvidia-peermem";

}  // namespace vfpass::guest
