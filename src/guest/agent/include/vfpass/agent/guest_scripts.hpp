#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/agent/agent.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::agent {

/// Runs a constant script in the guest. Variable data is passed as $0, $1, ... or on standard
/// input, so that the shell never interprets it. Throws AgentUnavailable, like Agent::run.
ExecResult runShell(Agent& agent, const std::string& script, std::vector<std::string> arguments,
                    std::string_view input = {});

/// First line of a guest program's output, at most 200 bytes, escaped for terminals.
std::string firstLine(const std::string& text);

// Exit codes of scripts that begin with `trustFunctions`.
inline constexpr int untrusted = 4;    ///< stderr names the entry and the reason
inline constexpr int toolMissing = 5;  ///< stderr names the program

/// Shell functions for files that the agent writes or root runs. qemu-ga's guest-file-open creates
/// a file with mode 0666 (fchmod, regardless of the umask), and an open descriptor survives chmod
/// and rename. So these functions create each file empty, with its final owner and mode, in a
/// directory that only root can write; the agent only fills it. They work in dash, busybox and
/// bash.
inline constexpr const char* trustFunctions = R"sh(
refuse() { printf '%s\n' "$1" >&2; exit 4; }
require() { command -v "$1" >/dev/null || { echo "$1 is missing in the guest" >&2; exit 5; }; }
require id
require stat
agent=$(id -u)
# Requires that only root and the agent's user can write the entry. A `parent` may be writable if it is sticky: others
# cannot rename or remove root's files in it.
trusted_entry() {
  [ ! -h "$1" ] || refuse "$1 is a symbolic link"
  set -- "$1" "$2" $(stat -c '%u 0%a' "$1")
  [ $# = 4 ] || refuse "cannot stat $1"
  [ "$3" = 0 ] || [ "$3" = "$agent" ] || refuse "$1 is owned by user $3"
  [ $(($4 & 022)) = 0 ] || { [ "$2" = parent ] && [ $(($4 & 01000)) != 0 ]; } ||
    refuse "$1 can be written by others (mode $4)"
}
# Checks the directory and all directories above it; `make` creates those that are missing.
trusted_directory() {
  case $1 in /*) ;; *) refuse "$1 is not an absolute path" ;; esac
  trusted_entry / parent
  walked='' rest=${1#/}
  while [ -n "$rest" ]; do
    name=${rest%%/*} kind=last
    case $rest in */*) rest=${rest#*/} ;; *) rest='' ;; esac
    [ -n "$name" ] || continue
    walked=$walked/$name
    [ -z "$rest" ] || kind=parent
    [ -e "$walked" ] || [ -h "$walked" ] || [ "${2:-}" != make ] || mkdir "$walked" || exit 1
    trusted_entry "$walked" "$kind"
    [ -d "$walked" ] || refuse "$walked is not a directory"
  done
}
# new_file PATH MODE [USER GROUP]: noclobber opens with O_EXCL.
new_file() {
  rm -f "$1" || exit 1
  (umask 077; set -C; : >"$1") || exit 1
  [ $# -lt 4 ] || chown "$3:$4" "$1" || exit 1
  chmod "$2" "$1" || exit 1
}
# has_content PATH SHA256
has_content() {
  require sha256sum
  sum=$(sha256sum <"$1") || exit 1
  [ "${sum%% *}" = "$2" ]
}
)sh";

/// The functions and a script that uses them.
inline std::string withTrust(const char* script) { return std::string(trustFunctions) + script; }

/// SHA-256 as 64 lower-case hexadecimal digits, as `sha256sum` prints it.
std::string sha256(std::string_view content);

/// What in the guest uses a device.
struct DeviceUse {
  std::vector<std::string> users;          ///< one phrase each, escaped for terminals
  std::vector<std::string> notObservable;  ///< checks that could not be made, and why
};

/// Queries the guest: addresses and master of the interface with the lease's MAC or port GUID, and
/// processes that have its RDMA device open. A failing guest ends up in `notObservable`; it never
/// makes this function throw.
DeviceUse findUsers(Agent& agent, const Lease& lease);

}  // namespace vfpass::agent
