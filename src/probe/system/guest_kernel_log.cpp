#include "system/guest_kernel_log.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "vfpass/base/kernel_record.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

constexpr std::size_t maxLines = 48;
constexpr std::size_t longestLine = 256;

/// Parts of lines that explain failures, in lower case.
constexpr std::array<std::string_view, 16> topics{
    "nvrm", "nvidia", "peer_mem", "peermem", "mlx5",  "mlx4", "infiniband",   "ib_core",
    "rdma", "rxe",    "dmar",     "amd-vi",  "iommu", "smmu", "can't assign", "failed to assign"};

bool isAboutTopic(std::string_view text) {
  const std::string lower = toLower(text);
  return std::ranges::any_of(
      topics, [&](std::string_view topic) { return lower.find(topic) != std::string::npos; });
}

}  // namespace

nlohmann::json readKernelLog(const SysfsReader& sysfs) {
  std::deque<std::string> lines;
  const bool read = sysfs.eachRecord("/dev/kmsg", [&](std::string_view record) {
    for (const std::string& line : splitLines(record)) {
      const std::string_view text = kernelText(line);
      if (!isAboutTopic(text) || explainsNothing(text)) {
        continue;
      }
      lines.push_back(printable(text.substr(0, longestLine)));
      if (lines.size() > maxLines) {
        lines.pop_front();
      }
    }
  });
  return read ? nlohmann::json(lines) : nlohmann::json(nullptr);
}

}  // namespace vfpass::probe
