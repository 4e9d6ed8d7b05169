#include "judge_confinement.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "vfpass/agent/confinement.hpp"

namespace vfpass::verify {
namespace {

// Link, port and GID come from sysfs, which the type may read.
constexpr std::array<std::string_view, 8> fromInventory{
    "driver", "mac", "rdma-core", "rdma-device", "rdma-opens", "gpu", "gpu-driver", "gpu-path"};

}  // namespace

Finding withConfinement(Finding finding, const std::string& context) {
  if (context.empty() || finding.outcome != Outcome::failed ||
      std::ranges::find(fromInventory, finding.key) == fromInventory.end()) {
    return finding;
  }
  finding.outcome = Outcome::notObservable;
  finding.seen += "; SELinux confines the probe (" + context + ")";
  finding.remedy = agent::confinementRemedy();
  return finding;
}

}  // namespace vfpass::verify
