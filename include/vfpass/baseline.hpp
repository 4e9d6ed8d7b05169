#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfpass/finding.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass {

/// What a PF reached on the host itself, without a VM: `vfpass verify --baseline`. Guests with its
/// VFs are compared with it.
struct Baseline {
  std::string time;     ///< ISO 8601, UTC
  std::string host;     ///< its name
  std::string machine;  ///< /etc/machine-id; empty: unknown
  PciAddress pf;        ///< the slot of the card
  std::string guid;     ///< of the PF's RDMA device, which stays with the card
  std::string serial;   ///< of the card; empty: unknown
  std::string firmware;
  std::string driver;  ///< `mlx5_core`, followed by the module's version if it has one
  /// What bandwidth depends on, by the name of a factor (`pcie-link`, `cpuidle-governor`), as it
  /// was during the measurement. What is not observable is missing.
  std::map<std::string, std::string> settings;
  /// Who used the card (its PFs and their VFs, which share its PCI Express link) before, during or
  /// after the measurement, which lowers the figures; empty: nobody who could be seen.
  std::vector<std::string> users;
  /// Why there may be other users; empty: all could be seen.
  std::vector<std::string> unseenUsers;
  std::vector<Figure> figures;  ///< Figure::gpu: the GPU's address on the host
};

}  // namespace vfpass
