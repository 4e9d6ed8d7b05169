#include "independent_vfs.hpp"

#include <algorithm>

namespace vfpass::verify {
namespace {

using Gpus = std::map<std::string, std::vector<std::size_t>>;

bool shareGpu(const Lease& one, const Lease& other, const Gpus& gpus) {
  const auto first = gpus.find(one.entry);
  const auto second = gpus.find(other.entry);
  return first != gpus.end() && second != gpus.end() &&
         std::ranges::find_first_of(first->second, second->second) != first->second.end();
}

}  // namespace

std::vector<VfGroup> independentVfs(const std::vector<Lease>& leases, const Gpus& gpus) {
  std::vector<VfGroup> groups;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const auto dependent = [&](const VfGroup& group) {
      return std::ranges::any_of(group, [&](std::size_t other) {
        return leases[i].pf == leases[other].pf || shareGpu(leases[i], leases[other], gpus);
      });
    };
    // This VF may connect groups that were independent so far.
    VfGroup joined;
    for (const VfGroup& group : groups) {
      if (dependent(group)) {
        joined.insert(joined.end(), group.begin(), group.end());
      }
    }
    std::erase_if(groups, dependent);
    joined.push_back(i);
    std::ranges::sort(joined);
    groups.push_back(joined);
  }
  std::ranges::sort(groups);
  return groups;
}

std::size_t concurrentGroups(std::size_t groups, unsigned vcpus) {
  return std::max<std::size_t>(1, std::min<std::size_t>(groups, vcpus / 2));
}

}  // namespace vfpass::verify
