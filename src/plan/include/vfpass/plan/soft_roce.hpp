#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/plan/objection.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::plan {

/// What host.yaml, the kernel and our records say about one SoftRoCE link, and what follows.
struct SoftRoceDecision {
  std::string name;
  std::optional<SoftRocePolicy> wanted;  ///< empty: host.yaml does not name it
  std::optional<RdmaLink> found;         ///< empty: there is no device of that name
  bool ours = false;                     ///< what was found is what vfpass made
  bool remove = false;                   ///< takes place before any link is made
  bool create = false;
  bool forget = false;  ///< our record of it means nothing any more
  std::optional<Objection> objection;
};

/// One decision for each link that host.yaml names, that vfpass has made, or that exists, by name.
/// What vfpass has not made is neither removed nor changed. A record of another boot, or of another
/// device than the one that has its name and netdev now, means nothing.
std::vector<SoftRoceDecision> decideSoftRoce(const std::vector<SoftRocePolicy>& policy,
                                             const std::vector<RdmaLink>& found,
                                             const std::vector<SoftRoceRecord>& records,
                                             const std::string& bootId);

}  // namespace vfpass::plan
