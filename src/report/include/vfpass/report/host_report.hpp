#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/plan.hpp"
#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// One property of a PF: what host.yaml wants beside what the PF has.
struct HostSetting {
  std::string name;                   ///< as in host.yaml: `virtual-function-count`, `mtu`, ...
  std::optional<std::string> wanted;  ///< empty: host.yaml does not say
  std::optional<std::string> found;   ///< empty: not observable

  /// What cannot be observed is never as wanted.
  [[nodiscard]] bool differs() const { return wanted && wanted != found; }
};

/// One PF of the host, or an entry of host.yaml that no PF answers to.
struct HostEntry {
  std::string name;     ///< the PF's address, otherwise the selector as host.yaml has it
  std::string netdev;   ///< empty: none
  bool listed = false;  ///< host.yaml has an entry for it
  std::vector<HostSetting> settings;
  std::vector<Step> steps;            ///< what apply did or would do
  std::vector<std::string> failures;  ///< why something could not be done
  bool differs = false;               ///< apply has something to do

  /// A setting differs, apply has something to do, or something failed.
  [[nodiscard]] bool pending() const;
};

/// One SoftRoCE link: of host.yaml, or found on the host.
struct SoftRoceEntry {
  std::string name;                   ///< of the RDMA device
  std::optional<std::string> wanted;  ///< netdev; empty: host.yaml does not name the link
  std::optional<std::string> found;   ///< netdev; empty: there is no such link
  bool madeByVfpass = false;          ///< so that apply removes it when host.yaml drops it
  std::vector<Step> steps;            ///< what apply did or would do
  std::vector<std::string> failures;  ///< why something could not be done

  /// What vfpass made and nobody wants any more is to go; what others made may stay.
  [[nodiscard]] bool differs() const { return wanted ? wanted != found : madeByVfpass; }
  [[nodiscard]] bool pending() const { return differs() || !failures.empty(); }
};

struct HostReport {
  std::vector<HostEntry> pfs;
  std::vector<SoftRoceEntry> softRoce;
};

/// `vfpass host show`, `host apply`: each PF's settings, wanted beside found, then what was done
/// and what failed; the same for SoftRoCE links. JSON: docs/json/host.schema.json.
void writeHost(std::ostream& out, const HostReport& report, const Style& style);

}  // namespace vfpass::report
