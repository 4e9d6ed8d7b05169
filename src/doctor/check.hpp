#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/diagnosis.hpp"
#include "view.hpp"

namespace vfpass::doctor {

/// Takes what a check finds, under the check's key.
class Results {
 public:
  Results(std::string_view key, std::string_view why, std::vector<Diagnosis>& into)
      : key_(key), why_(why), into_(into) {}

  void passed(std::string subject, std::string expected, std::string seen);
  /// `remedy` is a command to type, where there is one.
  void failed(std::string subject, std::string expected, std::string seen, std::string remedy);
  void unseen(std::string subject, std::string expected, std::string seen, std::string remedy);
  void waived(std::string reason);

 private:
  std::string_view key_;
  std::string_view why_;
  std::vector<Diagnosis>& into_;
};

/// One check. A new one is a row in its area's table, two tests, and a row in docs/doctor.md.
struct Check {
  std::string_view key;
  std::string_view why;
  std::string (*inapplicable)(const View&);  ///< why it does not apply; empty: it does
  void (*run)(const View&, Results&);
};

// One table for each area, the first link of the chain first.
std::span<const Check> cpuIommuChecks();
std::span<const Check> sriovChecks();
std::span<const Check> firmwareChecks();
std::span<const Check> eswitchChecks();
std::span<const Check> acsChecks();
std::span<const Check> gpuChecks();
std::span<const Check> driverOrderChecks();
std::span<const Check> moduleChecks();
std::span<const Check> rdmaChecks();
std::span<const Check> flowControlChecks();
std::span<const Check> libvirtChecks();
std::span<const Check> daemonChecks();
std::span<const Check> memoryLockChecks();
std::span<const Check> driverStopChecks();
std::span<const Check> guestChecks();
std::span<const Check> rivalChecks();

// Reasons that several checks share.
std::string always(const View& view);
std::string withoutGpu(const View& view);
std::string withoutPf(const View& view);
std::string withoutRail(const View& view);

/// PCI vendor of ConnectX cards.
inline constexpr std::uint16_t mellanox = 0x15b3;

/// Of its first RDMA port that says.
LinkLayer layerOf(const TopologyFunction& function);

/// PFs that guests get VFs of, as far as that is known: spare ports are down and that is fine.
std::vector<std::size_t> usedPfs(const View& view);

/// VFs that mappings and host.yaml ask of a PF, as far as that is known.
unsigned wantedVfs(const View& view, const PciAddress& pf);

}  // namespace vfpass::doctor
