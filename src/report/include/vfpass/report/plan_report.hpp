#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/domain_setting.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/report/style.hpp"
#include "vfpass/topology/device_matrix.hpp"

namespace vfpass::report {

/// How far a VM's devices are from each other: on the host, in the guest now, and once the plan has
/// run. Empty: the plan does not change them.
struct PlanDistances {
  topology::DeviceMatrix host;
  topology::DeviceMatrix before;
  topology::DeviceMatrix after;
};

/// One domain setting, and whether the plan makes it.
struct PlanSetting {
  DomainSetting setting;
  bool applied = false;
};

/// What the domain lacks for its devices, beside them.
struct PlanSettings {
  std::vector<PlanSetting> settings;
  std::string xmlDiff;  ///< what the proposed ones that the plan does not make would change
};

/// `vfpass plan` and `--dry-run`: numbered steps with their reasons, marked where somebody on the
/// host can notice them, then domain settings, the guest's distances, and the change to the
/// domain's XML as a unified diff (empty: none). JSON: docs/json/plan.schema.json.
void writePlan(std::ostream& out, const Plan& plan, const std::string& xmlDiff, const Style& style,
               const PlanDistances& distances = {}, const PlanSettings& settings = {});

}  // namespace vfpass::report
