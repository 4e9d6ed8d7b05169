#pragma once

#include <cstdint>

#include "rdma/queue_pair_connection.hpp"
#include "rdma/verbs_library.hpp"

namespace vfpass::probe {

/// This side's port, as far as a path begins there.
struct PathSource {
  ibv_port_attr attributes{};
  std::uint8_t port = 1;
  int gidIndex = 0;
};

/// The path to the peer's port: its LID on InfiniBand, and its GID where one of the ports requires
/// a global route header. Throws Error if the link layers differ or the peer lacks such a GID or a
/// LID.
ibv_ah_attr addressVector(const PathSource& source, const ConnectionInfo& peer);

}  // namespace vfpass::probe
