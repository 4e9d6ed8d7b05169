#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// A process, or a part of the kernel, that has something open in an RDMA device.
struct RdmaUser {
  unsigned process = 0;     ///< 0: the kernel, or a process that is not visible from here
  std::string description;  ///< `process 4711 (ib_write_bw)`: printable
};

/// Who uses an RDMA device: has a context, queue pair, memory region or protection domain.
struct RdmaUse {
  std::vector<RdmaUser> users;
  std::string error;  ///< why not everything could be seen; empty: it was
};

/// For each of these devices (the kernel's numbers), in one exchange with the kernel.
std::vector<RdmaUse> readRdmaUse(const Root& root, const std::vector<std::uint32_t>& numbers,
                                 std::chrono::milliseconds deadline);

/// The users of one device, described. Throws Error: what cannot be seen is not taken for unused.
std::vector<std::string> rdmaUsers(const Root& root, std::uint32_t number,
                                   std::chrono::milliseconds deadline);

}  // namespace vfpass::host
