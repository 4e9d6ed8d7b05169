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

/// What host.yaml, the kernel and the records of vfpass have for one SoftRoCE link, and the
/// resulting decision.
struct SoftRoceDecision {
  std::string name;
  std::optional<SoftRocePolicy> wanted;  ///< empty: host.yaml does not name it
  std::optional<RdmaLink> found;         ///< empty: there is no device of that name
  bool ours = false;                     ///< vfpass created the link that was found
  bool remove = false;                   ///< happens before any link is created
  bool create = false;
  bool forget = false;  ///< the record is out of date
  std::optional<Objection> objection;
};

/// True when `found` is the link that vfpass created in this boot according to the record. A record
/// without a number was written before its link was created, when no link of that name existed.
bool isTheOneMade(const RdmaLink& found, const SoftRoceRecord& record, const std::string& bootId);

/// Problems with removing a link that programs use.
std::vector<Objection> objectionsToRemoval(const std::vector<std::string>& users);

/// The complete input of `host apply` for the SoftRoCE links.
struct SoftRoceInput {
  std::vector<SoftRocePolicy> policy;
  std::vector<RdmaLink> found;
  std::vector<SoftRoceRecord> records;
  std::string bootId;
  std::map<std::string, std::vector<std::string>> users;  ///< of links that vfpass created, by name
  std::map<std::string, std::string> netdevFaults;        ///< why a netdev cannot carry a link
  std::set<std::string> hardwareNetdevs;                  ///< netdevs with hardware RDMA
};

/// The result of planning the links. A link with a problem is left unchanged and has no steps; the
/// others have.
struct SoftRocePlan {
  std::vector<SoftRoceDecision> decisions;
  Plan plan;
};

/// Removes links first, because a netdev can carry only one, then creates the others.
SoftRocePlan planSoftRoce(const SoftRoceInput& input);

/// The name of the link that a step of such a plan changes.
std::string softRoceName(const Action& action);

/// One decision for each link that host.yaml names, that vfpass has created, or that exists, by
/// name. Links that vfpass has not created are neither removed nor changed. A record of another
/// boot, or of another device than the one that has its name and netdev now, is ignored.
std::vector<SoftRoceDecision> decideSoftRoce(const std::vector<SoftRocePolicy>& policy,
                                             const std::vector<RdmaLink>& found,
                                             const std::vector<SoftRoceRecord>& records,
                                             const std::string& bootId);

}  // namespace vfpass::plan
