#pragma once

namespace vfpass::setup {

// Shell scripts that guest-setup runs in the guest. They are constant: variable data is passed as
// arguments, and $0 is a prefix of every path. They work in dash, busybox and bash.

// Needs `trustFunctions`. Arguments: directories, `--`, then for each file path, mode, user and
// group. The new file is in the same directory as the old one, so that a rename replaces it
// atomically and it gets the directory's SELinux label.
inline constexpr const char* createScript = R"sh(
umask 022
require sha256sum
while [ "$1" != -- ]; do [ -d "$0$1" ] || mkdir -p "$0$1" || exit 1; shift; done
shift
[ ! -d "$0/var/lib/vfpass-setup" ] || chmod 0700 "$0/var/lib/vfpass-setup" || exit 1
while [ $# -ge 4 ]; do
  file=$0$1
  trusted_directory "${file%/*}"
  new_file "${file%/*}/.${file##*/}.vfpass-new" "$2" "$3" "$4"
  shift 4
done
)sh";
// Needs `trustFunctions`. Arguments: path and SHA-256 of each file. All files are checked before
// the first is renamed.
inline constexpr const char* installScript = R"sh(
new_of() { file=$1 new=${1%/*}/.${1##*/}.vfpass-new; }
expected=''
for word; do
  if [ -z "$expected" ]; then new_of "$0$word"; expected=yes; continue; fi
  has_content "$new" "$word" || refuse "$new was changed while it was written"
  expected=''
done
while [ $# -ge 2 ]; do
  new_of "$0$1"
  sync "$new" && mv -f "$new" "$file" || exit 1
  shift 2
done
)sh";
inline constexpr const char* removeUnfinishedScript = R"sh(
for path; do file=$0$path; rm -f "${file%/*}/.${file##*/}.vfpass-new"; done
)sh";
inline constexpr const char* removeScript = R"sh(for path; do rm -f "$0$path" || exit 1; done)sh";
inline constexpr const char* removeRecordScript = R"sh(
rm -f "$0/var/lib/vfpass-setup/originals.json" || exit 1
rmdir "$0/var/lib/vfpass-setup"
exit 0
)sh";
inline constexpr const char* removeDirectoriesScript = R"sh(
for folder; do rmdir "$0$folder" 2>/dev/null; done
exit 0
)sh";
inline constexpr const char* netplanScript = "netplan generate && netplan apply";
// Arguments: pairs of connection ID and interface.
inline constexpr const char* connectionsScript = R"sh(
nmcli connection reload || exit 1
while [ $# -ge 2 ]; do
  nmcli -w 30 connection up id "$1" ifname "$2" || exit 1
  shift 2
done
)sh";
// Arguments: interfaces. NetworkManager keeps a connection active after its file was removed, also
// one that netplan generated. Deleting fails if NetworkManager has dropped the profile already.
inline constexpr const char* endConnectionsScript = R"sh(
command -v nmcli >/dev/null || exit 0
for name; do
  connection=$(nmcli -g GENERAL.CONNECTION device show "$name" 2>/dev/null) || continue
  case $connection in vfpass-* | netplan-vfpass-*) ;; *) continue ;; esac
  for folder in etc run; do
    [ ! -e "$0/$folder/NetworkManager/system-connections/$connection.nmconnection" ] || continue 2
  done
  nmcli connection delete id "$connection" || nmcli connection down id "$connection" || exit 1
done
)sh";
inline constexpr const char* networkdScript = R"sh(
networkctl reload || exit 1
[ $# = 0 ] || networkctl reconfigure "$@"
)sh";
// Arguments: interfaces. Runs before their stanzas change, because ifdown reverts what the file
// says when it runs.
inline constexpr const char* interfacesDownScript = R"sh(
for name; do
  grep -q "^iface $name " "$0/etc/network/interfaces.d/vfpass" 2>/dev/null || continue
  [ -z "$(ifquery --state "$name")" ] || ifdown "$name" || exit 1
done
)sh";
// Arguments: interfaces. ifup fails if the interface already has the address.
inline constexpr const char* interfacesUpScript = R"sh(
for name; do
  grep -q "^iface $name " "$0/etc/network/interfaces.d/vfpass" 2>/dev/null || continue
  [ -z "$(ifquery --state "$name")" ] || continue
  address=$(ifquery "$name" | sed -n 's/^address: //p')
  [ -z "$address" ] || ip address del "$address" dev "$name" 2>/dev/null
  ifup "$name" || exit 1
done
)sh";
inline constexpr const char* enableScript =
    R"sh(systemctl daemon-reload && systemctl -q enable "$1")sh";
inline constexpr const char* disableScript = R"sh(systemctl -q disable "$1")sh";
// $1 interface, $2 its new name. Kernels before 6.2 rename only an interface that is down, and
// none to its own alternative name. During a rollback, the interface may still have the name that
// it is to get.
inline constexpr const char* renameScript = R"sh(
[ -e "$0/sys/class/net/$1" ] || [ ! -e "$0/sys/class/net/$2" ] || exit 0
ip link property del dev "$1" altname "$2" 2>/dev/null
ip link set dev "$1" down && ip link set dev "$1" name "$2"
)sh";
// $1 interface, $2 MTU, $3 up or down, $4 arp_announce, $5 arp_ignore (empty: unchanged), then
// +ADDRESS and -ADDRESS.
inline constexpr const char* portScript = R"sh(
name=$1 mtu=$2 state=$3 announce=$4 ignore=$5
shift 5
# A failed change is no error if a network manager has made it in the meantime.
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

}  // namespace vfpass::setup
