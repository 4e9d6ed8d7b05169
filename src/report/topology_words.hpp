#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfpass/report/table.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/nearest_pf.hpp"
#include "vfpass/topology/pcie_link.hpp"

namespace vfpass::report {

/// The topology of a report with lookups that all formats need.
class TopologyWords {
 public:
  explicit TopologyWords(const TopologyReport& report);

  [[nodiscard]] const Topology& topology() const { return report_.topology; }
  [[nodiscard]] const std::string& origin() const { return report_.origin; }
  [[nodiscard]] const Device& function(std::size_t number) const {
    return report_.topology.functions[number];
  }
  [[nodiscard]] const std::vector<std::size_t>& gpus() const { return gpus_; }
  [[nodiscard]] const std::vector<std::size_t>& pfs() const { return pfs_; }
  [[nodiscard]] const std::vector<topology::Rail>& rails() const { return rails_; }
  /// GPUs, NICs that are not VFs, and NVSwitches.
  [[nodiscard]] std::vector<topology::Branch> branches() const;

  /// `GPU0`; the RDMA device of a NIC or else its netdev; otherwise the address.
  [[nodiscard]] std::string name(std::size_t function) const;
  /// The lease on a function or VF; may be null.
  [[nodiscard]] const Lease* leaseOf(std::size_t function) const;
  /// VFs of a PF by index.
  [[nodiscard]] const std::vector<std::size_t>& vfsOf(std::size_t pf) const;
  /// Names of the domains that hold leases, sorted, without duplicates.
  [[nodiscard]] std::vector<std::string> tenants() const;

 private:
  const TopologyReport& report_;
  std::vector<std::size_t> gpus_;
  std::vector<std::size_t> pfs_;
  std::vector<topology::Rail> rails_;
  std::map<std::size_t, std::string> names_;
  std::map<PciAddress, std::vector<std::size_t>> vfs_;  ///< by PF
  std::map<PciAddress, const Lease*> leases_;
};

/// `Gen5 x16`; `?` if unobservable.
std::string pcieText(const PcieLink& link);
/// `Gen5 x16`; `Gen3 x8 of Gen5 x16` for a degraded link; `Gen1 x16 of Gen5 x16 (if idle)` of a
/// GPU; `Gen4 x16 (Gen5 x16 card)` in a slower slot; `Gen2 x16 (virtual port)` of a switch.
std::string pcieText(const Topology& topology, const topology::Link& link);
Tint tintOf(const topology::Link& link);
/// `400 Gb/s`; empty if unknown.
std::string rateText(unsigned megabits);
/// `active 400 Gb/s`, of the first port or the netdev.
std::string portText(const Device& pf);
std::string hexText(unsigned value, int digits);
Tint tintOf(topology::Distance distance);

/// A mask of CPUs as a list: `0000ffff,ffff0000` as `16-47`.
std::string cpuText(const std::string& mask);

/// The common name, which is in the brackets of a name of the PCI database.
std::string shortModel(const Device& function);

}  // namespace vfpass::report
