#include <algorithm>

#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::verify {
namespace {

template <typename Match>
void takePairs(std::vector<Lease>& initiators, std::vector<Lease>& targets,
               std::vector<LeasePair>& pairs, const Match& match) {
  for (auto initiator = initiators.begin(); initiator != initiators.end();) {
    const auto target =
        std::ranges::find_if(targets, [&](const Lease& each) { return match(*initiator, each); });
    if (target == targets.end()) {
      ++initiator;
      continue;
    }
    pairs.push_back({*initiator, *target});
    targets.erase(target);
    initiator = initiators.erase(initiator);
  }
}

}  // namespace

std::vector<LeasePair> pairLeases(const std::vector<Lease>& initiators,
                                  const std::vector<Lease>& targets) {
  std::vector<Lease> near = initiators;
  std::vector<Lease> far = targets;
  std::vector<LeasePair> pairs;
  takePairs(near, far, pairs,
            [](const Lease& one, const Lease& other) { return one.entry == other.entry; });
  takePairs(near, far, pairs, [](const Lease& one, const Lease& other) {
    return vfOf(one).infiniband == vfOf(other).infiniband;
  });
  return pairs;
}

}  // namespace vfpass::verify
