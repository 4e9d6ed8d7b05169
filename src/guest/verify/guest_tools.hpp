#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "judge_device.hpp"
#include "judge_guest.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

inline constexpr const char* allReduceTest = "all_reduce_perf";  ///< of nccl-tests

/// Programs of perftest and nccl-tests in the guest's PATH. Throws AgentUnavailable.
std::set<std::string> findTools(agent::Agent& agent);

/// Parameters of a run of the guest's own tools.
struct ToolRun {
  std::string subject;
  std::uint64_t bytes = 0;
  std::uint64_t iterations = 0;
  std::optional<TestedGpu> gpu;  ///< use its memory, if perftest supports CUDA
};

/// Runs perftest over this port in loopback: bandwidth and latency of write and read. Its figures
/// are shown next to ours. perftest verifies no data, so its failure is a warning only. Throws
/// AgentUnavailable.
Finding runPerftest(agent::Agent& agent, const std::set<std::string>& tools, const RdmaPort& port,
                    const ToolRun& run, std::vector<Figure>& figures);

/// Runs all_reduce_perf over the guest's GPUs: `gpus` of them, those that CUDA has. The GPUs of one
/// VM reach each other without its NICs, so the result shows how NCCL uses the guest, not the
/// network. Throws AgentUnavailable.
Finding runAllReduce(agent::Agent& agent, const std::set<std::string>& tools, std::size_t gpus,
                     std::vector<Figure>& figures);

/// The average in Gb/s from the last result line of `ib_write_bw` or `ib_read_bw` with
/// --report_gbits. nullopt unless the line is for messages of `bytes` and the average is greater
/// than zero (perftest prints 0.000000 when its clock is unreliable). The text is untrusted.
std::optional<double> readPerftestBandwidth(std::string_view text, std::uint64_t bytes);

struct ToolLatency {
  double typicalMicroseconds = 0;  ///< the median
  double tailMicroseconds = 0;     ///< 99th percentile
};

/// The same for `ib_write_lat` and `ib_read_lat`.
std::optional<ToolLatency> readPerftestLatency(std::string_view text, std::uint64_t bytes);

struct AllReduce {
  double busGigabytesPerSecond = 0;  ///< average over all sizes
  bool right = false;                ///< nccl-tests found no wrong value
};

/// The summary that `all_reduce_perf` of nccl-tests prints at its end.
std::optional<AllReduce> readAllReduce(std::string_view text);

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
