#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/plan.hpp"
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

/// `found` is the link that the record says vfpass made in this boot. A record without a number was
/// written before its link was made, when there was none of its name.
bool isTheOneMade(const RdmaLink& found, const SoftRoceRecord& record, const std::string& bootId);

/// Refuses to take a link away from those who use it.
std::vector<Objection> objectionsToRemoval(const std::vector<std::string>& users);

/// Everything that `host apply` looks at for the SoftRoCE links, gathered beforehand.
struct SoftRoceInput {
  std::vector<SoftRocePolicy> policy;
  std::vector<RdmaLink> found;
  std::vector<SoftRoceRecord> records;
  std::string bootId;
  std::map<std::string, std::vector<std::string>> users;  ///< of links that vfpass made, by name
  std::map<std::string, std::string> netdevFaults;        ///< why a netdev can carry none
  std::set<std::string> hardwareNetdevs;                  ///< that have RDMA in hardware
};

/// What `host apply` would do with the links. A link with an objection is left as it is and has no
/// steps; the others have.
struct SoftRocePlan {
  std::vector<SoftRoceDecision> decisions;
  Plan plan;
};

/// First all links go that have to, because a netdev carries one only; then the others are made.
SoftRocePlan planSoftRoce(const SoftRoceInput& input);

/// The link that a step of such a plan is about.
std::string softRoceName(const Action& action);

/// One decision for each link that host.yaml names, that vfpass has made, or that exists, by name.
/// What vfpass has not made is neither removed nor changed. A record of another boot, or of another
/// device than the one that has its name and netdev now, means nothing.
std::vector<SoftRoceDecision> decideSoftRoce(const std::vector<SoftRocePolicy>& policy,
                                             const std::vector<RdmaLink>& found,
                                             const std::vector<SoftRoceRecord>& records,
                                             const std::string& bootId);

}  // namespace vfpass::plan
