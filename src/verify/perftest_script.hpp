#pragma once

#include <string>
#include <vector>

namespace vfpass::verify {

/// Runs a perftest program against itself: a server in the background, and the client, whose output
/// it prints. $@: the program and its arguments; $limit: seconds for each; $ports: ports to try.
/// perftest runs as root and trusts its other end, so no other user may be that end: only root can
/// listen on the ports, one of them has to be free before the server starts, and belongs to root
/// when the client starts. Works in dash, busybox and bash.
inline constexpr const char* perftestScript = R"sh(
fail() { printf '%s\n' "$1"; exit 1; }
[ "$(id -u)" = 0 ] || fail 'the agent does not run as root: any user could take the place of perftest'
# Before Linux 4.11 it is always 1024. dash reads byte by byte, and gets only the first of this file.
unprivileged=$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start 2>/dev/null)
[ "${unprivileged:-1024}" -ge 1024 ] ||
  fail 'any user could take the place of perftest: net.ipv4.ip_unprivileged_port_start is below 1024'
# The users that listen on port $1, a hexadecimal number.
listeners() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    while read -r slot here there state queues timer retransmits user rest; do
      case $state:$here in 0A:*:"$1") echo "$user" ;; esac
    done | sort -u
}
said='no free port'
for port in $ports; do
  number=$(printf %04X "$port")
  [ -z "$(listeners "$number")" ] || continue
  timeout "$limit" "$@" -p "$port" >/dev/null 2>&1 &
  server=$!
  users=
  for pause in 0.05 0.1 0.2 0.4 0.8 1 1 1 1 1 1 1 1 1 1; do
    users=$(listeners "$number")
    [ -z "$users" ] && kill -0 "$server" 2>/dev/null || break
    sleep $pause 2>/dev/null || sleep 1
  done
  if [ "$users" = 0 ] && kill -0 "$server" 2>/dev/null; then
    said=$(timeout "$limit" "$@" -p "$port" 127.0.0.1 2>&1) && { printf '%s\n' "$said"; wait "$server"; exit 0; }
    kill "$server" 2>/dev/null
    break
  fi
  if kill "$server" 2>/dev/null; then
    said='the server does not listen'
    break
  fi
  # Its reason went nowhere, and the server ends for it again.
  said=$(timeout 5 "$@" -p "$port" 2>&1)
done
printf '%s\n' "$said"
exit 1
)sh";

/// For $ports: some of those on which only root can listen, in an order that nobody can predict.
std::vector<std::string> randomPorts();

}  // namespace vfpass::verify
