#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "firmware_settings.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "view.hpp"

namespace vfpass::doctor {

inline constexpr std::uint64_t mebibyte = 1ULL << 20U;
inline constexpr std::uint64_t gibibyte = 1ULL << 30U;

/// Collects the findings of one check under its key.
class Results {
 public:
  Results(std::string_view key, std::string_view why, std::vector<Diagnosis>& into)
      : key_(key), why_(why), into_(into) {}

  void passed(std::string subject, std::string expected, std::string seen);
  /// `remedy` is a command where one exists. Nothing in it edits a file of another program, except
  /// by that program's own command: other edits are described in words
  /// (tests/cli/remedies_test.py).
  void failed(std::string subject, std::string expected, std::string seen, std::string remedy);
  /// About one device: failed, but only a warning if the device is not used (View::uses).
  void failedIfUsed(bool used, std::string subject, std::string expected, std::string seen,
                    std::string remedy);
  /// Works, but deserves attention.
  void warned(std::string subject, std::string expected, std::string seen, std::string remedy);
  void notObservable(std::string subject, std::string expected, std::string seen,
                     std::string remedy);
  void waived(std::string reason);
  /// About one device, to which the check does not apply.
  void waived(std::string subject, std::string reason);

 private:
  void add(Outcome outcome, std::string subject, std::string expected, std::string seen,
           std::string remedy);

  std::string_view key_;
  std::string_view why_;
  std::vector<Diagnosis>& into_;
};

/// One check. A new check needs a row in its area's table, two tests and a row in docs/doctor.md.
struct Check {
  std::string_view key;
  std::string_view why;
  std::string (*inapplicable)(const View&);  ///< why it does not apply; empty if it does
  void (*run)(const View&, Results&);
};

// One table for each area, in the order of the chain from the processor to the guest.
std::span<const Check> cpuIommuChecks();
std::span<const Check> sriovChecks();
std::span<const Check> firmwareChecks();
std::span<const Check> eswitchChecks();
std::span<const Check> acsChecks();
std::span<const Check> pcieLinkChecks();
std::span<const Check> gpuChecks();
std::span<const Check> moduleChecks();
std::span<const Check> rdmaChecks();
std::span<const Check> flowControlChecks();
std::span<const Check> libvirtChecks();
std::span<const Check> driverStopChecks();
std::span<const Check> guestChecks();
std::span<const Check> competingManagerChecks();

// Checks of these tables that have files of their own.

/// Lists serious lines of the kernel's log about used devices.
void checkKernelLog(const View& view, Results& results);
/// Lists the devices that no VM gets.
void checkQuarantine(const View& view, Results& results);
std::string withoutQuarantine(const View& view);  ///< why checkQuarantine does not apply
/// Adds the line of the kernel's log that explains it to each failure and warning.
void quoteKernelLog(const View& view, std::vector<Diagnosis>& diagnoses);
/// Checks that each GPU can be unbound from its driver: no process has its device files open.
void checkGpuDrivers(const View& view, Results& results);
/// Checks that the fabric manager has a partition with exactly the GPUs of a VM's mapping, as far
/// as it can be asked.
void checkPartition(const View& view, const NvlinkRequirement& required, Results& results);
/// Checks that NICs below a switch with a GPU have the ATS capability, and the others not.
void checkAts(const View& view, Results& results);
/// Checks that ATS is enabled in the VFs of those NICs.
void checkVfAts(const View& view, Results& results);
/// Names the NICs without mlx5's firmware, and the checks that do not apply to them.
void checkOtherNics(const View& view, Results& results);
/// Shows for each PF whose VFs are to migrate the state of the VFIO driver and the firmware's
/// setting.
void checkMigration(const View& view, Results& results);
std::string withoutMigration(const View& view);  ///< why checkMigration does not apply
/// Checks in every configuration that OpenSM reads on this host that it enables virtual ports.
void checkOpenSm(const View& view, Results& results);
std::string withoutInfiniband(const View& view);  ///< why checkOpenSm does not apply

// Shared implementations of Check::inapplicable.
std::string always(const View& view);
std::string withoutGpu(const View& view);
std::string withoutPf(const View& view);
std::string withoutRail(const View& view);
/// Empty if any of the PFs is such a one, otherwise `reason`.
std::string unlessAnyPf(const View& view, bool (*isSuch)(const Device&), const char* reason);

/// Whether the examined host, not this machine, has Arm processors.
bool isArm(const View& view);

/// Link layer of the function's first RDMA port that reports one.
LinkLayer layerOf(const Device& function);

/// PFs whose first RDMA port has this link layer.
std::vector<std::size_t> pfsWith(const View& view, LinkLayer layer);

/// The PF's eswitch mode by devlink: `legacy`, `switchdev`, or `denied` (EPERM) and
/// `unsupported` (EOPNOTSUPP) if the driver refuses it; nullopt if unknown.
std::optional<std::string> eswitchModeOf(const View& view, const Device& pf);

/// Queries the firmware settings of all cards, once, before any check uses them.
void queryFirmware(const View& view);
/// The settings of the function's card; empty if unknown.
FirmwareSettings firmwareSettingsOf(const View& view, const Device& function);

/// PFs whose VFs go to guests, as far as known: the used ones; if nothing names a device, those of
/// the rails, or all. Ports of other PFs may be down.
std::vector<std::size_t> usedPfs(const View& view);

/// Whether both are functions of one card.
bool sameCard(PciAddress one, const PciAddress& other);

/// The DMA function of this GPU's Direct NIC: one below the same port; nullopt if there is none.
std::optional<std::size_t> directNicOf(const View& view, std::size_t gpu);

/// Whether no other function shares its IOMMU group, but for bridges and, for a GPU, functions of
/// its own card; nullopt if it has no group.
std::optional<bool> isAloneInGroup(const View& view, std::size_t number);

/// Whether GPU and NIC are below one switch.
bool sharesSwitch(const View& view, std::size_t gpu, std::size_t pf);
bool sharesSwitchWithGpu(const View& view, std::size_t pf);

/// Whether the PF serves a GPU below the same switch, so that ATS lets their traffic stay there.
bool needsAts(const View& view, std::size_t pf);

/// Whether ATS can be expected of the NIC: it shows the capability, or it has firmware of mlx5,
/// which can. Only a few NICs of other vendors have ATS, and nothing here can enable it in them.
bool canHaveAts(const View& view, const Device& pf);

/// Why checks of NVIDIA's driver do not apply: the host has GPUs, but none of NVIDIA's. Otherwise
/// empty.
std::string withoutNvidiaGpu(const View& view);

/// Number of VFs that mappings and host.yaml require of a PF, as far as known.
unsigned wantedVfs(const View& view, const PciAddress& pf);

/// libvirt's daemons that run QEMU, the modular one first.
inline constexpr std::array daemons{"virtqemud", "libvirtd"};

/// PID of this daemon; nullopt if it is not running.
std::optional<std::string> processOf(const host::Root& root, const std::string& daemon);

}  // namespace vfpass::doctor
