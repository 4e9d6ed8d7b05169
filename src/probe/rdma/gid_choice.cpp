#include "rdma/gid_choice.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace vfpass::probe {
namespace {

/// Lower is better.
std::tuple<int, int, int> rank(const GidEntry& entry, bool ethernet) {
  if (!ethernet) {
    return {0, 0, entry.index};
  }
  const int version = entry.type.find("v2") != std::string::npos ? 0 : 1;
  int address = 1;
  if (entry.gid.starts_with("0000:0000:0000:0000:0000:ffff:")) {
    address = 0;
  } else if (entry.gid.starts_with("fe80:")) {
    address = 2;
  }
  return {version, address, entry.index};
}

}  // namespace

bool isEmptyGid(const std::string& gid) { return gid.find_first_not_of("0:") == std::string::npos; }

std::optional<int> recommendedGid(const std::vector<GidEntry>& entries, bool ethernet) {
  std::vector<GidEntry> used;
  std::ranges::copy_if(entries, std::back_inserter(used),
                       [](const GidEntry& entry) { return !isEmptyGid(entry.gid); });
  const auto best = std::ranges::min_element(
      used, {}, [ethernet](const GidEntry& entry) { return rank(entry, ethernet); });
  return best == used.end() ? std::nullopt : std::optional(best->index);
}

}  // namespace vfpass::probe
