#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::verify {

/// Runs the probe on this host with these arguments and returns its report. Throws Error.
using RunHostProbe = std::function<nlohmann::json(const std::vector<std::string>& arguments)>;

/// What to measure on the host.
struct BaselinePlan {
  PciAddress pf;
  std::optional<PciAddress> gpu = {};
  std::uint64_t messageBytes = std::uint64_t{64} << 10U;
  std::uint64_t iterations = 1000;
  std::chrono::seconds timeout = deadlines::verify;  ///< of the whole measurement
};

/// Measures a PF in loopback as verify measures a VF in its guest: writes and reads of host memory,
/// and with a GPU of its memory, with and without relaxed ordering, every byte checked.
/// Figure::subject is empty, Figure::gpu the GPU's address. `progress` is called when the next part
/// begins, and no probe runs then. Changes nothing: without a GPU the probe does not ask NVIDIA's
/// libraries, which may load modules. Throws Error (unverified) if the PF has no active port with a
/// GID, the host's driver cannot use the GPU, or a transfer fails.
std::vector<Figure> measureBaseline(const RunHostProbe& run, const BaselinePlan& plan,
                                    const std::function<void(const std::string& part)>& progress);

}  // namespace vfpass::verify
