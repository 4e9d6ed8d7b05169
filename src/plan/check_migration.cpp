#include <algorithm>
#include <string>
#include <vector>

#include "attach_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {
namespace {

// DEVLINK_PORT_FN_CAP_MIGRATABLE (include/uapi/linux/devlink.h).
constexpr Version kernelWithMigratable{6, 2};
// `<driver model=>` of a <hostdev> (libvirt's NEWS.rst, 10.0.0).
constexpr Version libvirtWithModel{10, 0};
// Protocol v2 since 8.0, but only with x-enable-migration=on; by default since 8.1
// (vfio_migration_realize).
constexpr Version qemuWithMigration{8, 1};

constexpr const char* migrationKey = "`migration: vfio`";

void requireVersion(const std::string& product, const std::optional<Version>& found,
                    const Version& needed, const std::string& reason,
                    std::vector<Objection>& objections) {
  if (isOlder(found, needed)) {
    const std::string wanted = product + " " + versionText(needed) + " or newer";
    objections.push_back({std::string(migrationKey) + " needs " + wanted + ", which " + reason +
                              "; this host has " + product + " " + versionText(found),
                          "install " + wanted + ", or use `teaming:` instead"});
  }
}

}  // namespace

void checkMigrationHost(const AttachInput& input, std::vector<Objection>& objections) {
  if (std::ranges::none_of(input.mapping.vfs, &MappedVf::migrates)) {
    return;
  }
  if (!input.hasMigrationDriver.value_or(true)) {
    objections.push_back(
        {std::string(migrationKey) + " needs the VFIO driver " + std::string(mlx5MigrationDriver) +
             ", and the running kernel (Linux " + versionText(input.kernel) +
             ") has no module for it",
         "boot a kernel with CONFIG_MLX5_VFIO_PCI, which Debian's kernels do not set, or use "
         "`teaming:` instead"});
  }
  requireVersion("Linux", input.kernel, kernelWithMigratable, "makes a VF migratable with devlink",
                 objections);
  requireVersion("libvirt", input.versions.libvirt, libvirtWithModel,
                 "knows <driver model='" + std::string(mlx5MigrationDriver) + "'/>", objections);
  requireVersion("QEMU", input.versions.qemu, qemuWithMigration, "migrates VFIO devices",
                 objections);
}

void checkMigration(const MappedVf& entry, const PhysicalFunction& pf,
                    std::vector<Objection>& objections) {
  if (!entry.migrates) {
    return;
  }
  const std::string subject =
      toString(entry.place) + ": " + entry.name + " has " + migrationKey + ", but ";
  const std::string name = "PF " + toString(pf.address);
  if (!hasMlx5Firmware(pf.vendor, pf.driver)) {
    objections.push_back({subject + name +
                              " is not a NIC of mlx5_core, and vfpass knows no other "
                              "driver that migrates a VF",
                          "remove `migration:`, or choose a PF of a ConnectX-7 or BlueField-3",
                          ExitCode::badInput});
  } else if (pf.linkLayer == LinkLayer::infiniband) {
    objections.push_back(
        {subject + name + " is InfiniBand: the card's firmware saves only Ethernet VFs",
         "remove `migration:`, or choose a PF whose port is Ethernet", ExitCode::badInput});
  } else if (pf.eswitchMode == EswitchMode::legacy) {
    // devlink has ports of VFs only in switchdev mode (mlx5_esw_offloads_devlink_port_register).
    objections.push_back(
        {subject + name + " is in legacy mode, in which no VF can be made migratable",
         "set `embedded-switch-mode: switchdev` for it in host.yaml and run "
         "`vfpass host apply`, or use `teaming:` instead"});
  }
}

}  // namespace vfpass::plan
