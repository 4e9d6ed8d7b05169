#pragma once

#include <set>
#include <string>

#include "judge_nccl.hpp"

namespace vfpass::verify {

/// What the connections of one member's log show.
struct Transports {
  std::set<std::string> used;        ///< entries of leased VFs with GPUDirect
  std::set<std::string> withoutGpu;  ///< entries of leased VFs without GPUDirect
  std::set<std::string> notLeased;   ///< RDMA devices
  std::set<std::string> sockets;     ///< transports
  std::set<std::string> impossible;  ///< between guests
  std::set<std::string> unknown;     ///< plugins, and devices that the log does not name
  std::set<std::string> inside;      ///< between GPUs of this guest
};

/// Of connections to other guests; if there is none, of those between this guest's GPUs.
Transports transportsOf(const NcclOutcome& outcome, const NcclMember& member);

}  // namespace vfpass::verify
