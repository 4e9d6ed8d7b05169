#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/finding.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/report/status_report.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::metrics {

/// The last kept report of one VM.
struct Verification {
  std::string domainName;
  Uuid domain;
  bool pending = false;  ///< started, and its verification has not ended
  bool hasReport = false;
  std::optional<report::SavedVerification> saved =
      std::nullopt;  ///< nullopt although hasReport: unreadable
};

/// The PCI Express link of a device that mappings, host.yaml or leases name.
struct DeviceLink {
  PciAddress device;
  double share = 1;  ///< of what device and port can do together, 0 to 1
};

/// The links of these devices as far as they are observable. Of a GPU only the width counts,
/// because it slows an idle link down; of a VF the PF's link.
std::vector<DeviceLink> linksOf(const Topology& topology, const std::set<PciAddress>& devices);

/// Everything that `vfpass metrics` has collected. An empty optional was not collected: its metrics
/// are missing, which differs from a value of 0.
struct Observation {
  std::string version;
  std::map<std::string, bool> collected;  ///< part, success
  std::optional<bool> libvirtUp;
  std::vector<PhysicalFunction> pfs;
  std::vector<DeviceLink> links = {};
  std::map<PciAddress, std::map<unsigned, VfStatistics>> statistics;  ///< by PF and index
  std::optional<std::vector<Lease>> leases;  ///< with the current names of their domains
  /// Need libvirt.
  std::optional<std::vector<report::StatusEntry>> entries;
  std::vector<report::RefusedMetadata> refused;
  std::map<std::string, bool> mappings;  ///< VM, attached
  std::optional<std::size_t> configurationProblems;
  std::optional<std::size_t> openOperations;
  std::optional<std::vector<QuarantinedDevice>> quarantined;
  std::optional<std::vector<Diagnosis>> diagnoses;
  std::vector<Verification> verifications;
};

/// At most so many figures of one report become metrics.
inline constexpr std::size_t mostFigures = 256;

/// The metrics as text: docs/metrics.md. Names and texts may come from guests.
std::string render(const Observation& observation);

}  // namespace vfpass::metrics
