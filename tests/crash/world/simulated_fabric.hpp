#pragma once

#include <string>
#include <vector>

#include "vfpass/fabric_partition.hpp"
#include "worker/wire.hpp"

namespace vfpass::crash {

/// Where vfpass finds the client of the simulated fabric manager.
inline constexpr const char* fmpmFile = "usr/sbin/fmpm";

/// A fabric manager. Like NVIDIA's, it refuses a partition that shares a GPU with an active one,
/// and knows no address of a GPU that is bound for a guest.
class SimulatedFabric {
 public:
  std::vector<FabricPartition> partitions;
  bool refuses = false;  ///< every change

  /// Executes `fmpm -a ID` or `fmpm -d ID`. The reply is an errno, or 0.
  Message change(const Message& request);
  /// The output of `fmpm -l`.
  [[nodiscard]] std::string list() const;
  [[nodiscard]] std::vector<unsigned> active() const;
  /// No partition is active: the fabric manager has started anew.
  void reboot();
};

}  // namespace vfpass::crash
