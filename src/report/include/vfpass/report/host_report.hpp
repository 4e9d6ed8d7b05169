#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

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
  std::vector<std::string> actions;   ///< what apply did or would do
  std::vector<std::string> failures;  ///< why something could not be done

  /// A setting differs, or something failed.
  [[nodiscard]] bool pending() const;
};

/// `vfpass host show`, `host apply`: each PF's settings, wanted beside found, then what was done
/// and what failed. JSON: docs/json/host.schema.json.
void writeHost(std::ostream& out, const std::vector<HostEntry>& entries, const Style& style);

}  // namespace vfpass::report
