#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/plan.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// One property of a PF: its value in host.yaml and its current value.
struct HostSetting {
  std::string name;                   ///< as in host.yaml: `virtual-function-count`, `mtu`, ...
  std::optional<std::string> wanted;  ///< nullopt: not in host.yaml
  std::optional<std::string> found;   ///< nullopt: not observable

  /// An unobservable value always differs.
  [[nodiscard]] bool differs() const { return wanted && wanted != found; }
};

/// One PF of the host, or an entry of host.yaml that matches no PF.
struct HostEntry {
  std::string name;     ///< the PF's address, or the selector of host.yaml
  std::string netdev;   ///< may be empty
  bool listed = false;  ///< host.yaml has an entry for it
  std::vector<HostSetting> settings;
  std::vector<Step> steps;            ///< steps that apply did or would run
  std::vector<std::string> failures;  ///< messages of failed steps
  bool differs = false;               ///< apply has steps to run

  /// A setting differs, apply has steps to run, or something failed.
  [[nodiscard]] bool pending() const;
};

/// One SoftRoCE link, from host.yaml or found on the host.
struct SoftRoceEntry {
  std::string name;                   ///< of the RDMA device
  std::optional<std::string> wanted;  ///< netdev; nullopt: not in host.yaml
  std::optional<std::string> found;   ///< netdev; nullopt: the link does not exist
  bool madeByVfpass = false;          ///< apply removes it once host.yaml drops it
  std::vector<Step> steps;            ///< steps that apply did or would run
  std::vector<std::string> failures;  ///< messages of failed steps

  /// A link that vfpass created and host.yaml no longer names differs; links of others may stay.
  [[nodiscard]] bool differs() const { return wanted ? wanted != found : madeByVfpass; }
  [[nodiscard]] bool pending() const { return differs() || !failures.empty(); }
};

struct HostReport {
  std::vector<HostEntry> pfs;
  std::vector<SoftRoceEntry> softRoce;
};

/// `vfpass host show`, `host apply`: each PF's settings, wanted and found, then the steps and
/// failures; the same for SoftRoCE links. JSON: docs/json/host.schema.json.
void writeHost(std::ostream& out, const HostReport& report, const Style& style);

}  // namespace vfpass::report
