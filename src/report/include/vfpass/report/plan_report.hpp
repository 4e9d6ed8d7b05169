#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/report/table.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::report {

/// Distances between the devices of a VM: on the host, in the guest now, and in the guest after the
/// plan. Empty if the plan does not change them.
struct PlanDistances {
  topology::DeviceMatrix host;
  topology::DeviceMatrix before;
  topology::DeviceMatrix after;
};

/// One domain setting, and whether the plan applies it.
struct PlanSetting {
  DomainSetting setting;
  bool applied = false;
};

/// Domain settings that the devices of the domain need.
struct PlanSettings {
  std::vector<PlanSetting> settings;
  std::string xmlDiff;  ///< changes by proposed settings that the plan does not apply
};

/// What only the text of a plan has; its JSON is always complete.
struct PlanText {
  std::string command;  ///< applies the plan, for the last line; empty: there is none
  bool xml = true;      ///< whether to show changes to the domain's XML
};

/// `vfpass plan` and `--dry-run`: numbered steps with their reasons, equal ones in groups, marked
/// if they may disrupt others on the host, then domain settings, distances where they differ, the
/// change to the domain's XML as a unified diff (may be empty), and a summary. JSON:
/// docs/json/plan.schema.json.
void writePlan(std::ostream& out, const Plan& plan, const std::string& xmlDiff, const Style& style,
               const PlanDistances& distances = {}, const PlanSettings& settings = {},
               const PlanText& text = {});

/// The plans of `vfpass gc --dry-run`, one for each domain. JSON: docs/json/plans.schema.json.
void writePlans(std::ostream& out, const std::vector<Plan>& plans, const Style& style);

}  // namespace vfpass::report
