#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "check.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/driver_modules.hpp"
#include "vfpass/host/link_settings.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* modeSetting = "VF_MIGRATION_MODE";
constexpr unsigned migrationEnabled = 2;  // MIGRATION_ENABLED(2), as mstconfig shows it
constexpr Version kernelWithMigratable{6, 2};

const Requirement* migrationOf(const View& view, const Device& pf) {
  const auto& vfs = view.requirements().vfs;
  const auto found = std::ranges::find_if(vfs, [&](const Requirement& requirement) {
    return requirement.migration && requirement.pf == pf.address;
  });
  return found == vfs.end() ? nullptr : &*found;
}

// The state of the driver: loaded, installed or absent; nullopt: unknown.
std::optional<std::string> driverState(const View& view) {
  const std::string driver(mlx5MigrationDriver);
  return view.answer("modules/" + driver + "/state", [&]() -> std::optional<std::string> {
    const auto has = host::hasVfioDriver(view.root(), driver);
    if (!has) {
      return std::nullopt;
    }
    return !*has ? "absent" : view.moduleLoaded(driver) ? "loaded" : "installed";
  });
}

// Whether devlink has `migratable` at the ports of the PF's VFs; nullopt: it has no such ports, or
// does not answer.
std::optional<bool> isMigratableInDevlink(const View& view, const Device& pf) {
  const auto answer = view.answer(
      "devlink/" + toString(pf.address) + "/migratable", [&]() -> std::optional<std::string> {
        try {
          const auto vfs = host::readMigratable(pf.address, deadlines::doctorNetlink);
          return vfs.empty() ? std::nullopt
                             : std::optional<std::string>(savesNone(vfs) ? "no" : "yes");
        } catch (const Error&) {  // timeout, or invalid reply
          return std::nullopt;
        }
      });
  return answer == "yes" || answer == "no" ? std::optional(answer == "yes") : std::nullopt;
}

/// What one PF's driver and firmware say, in the order in which they are set up.
struct MigrationState {
  std::vector<std::string> seen;
  std::string fault = {};    ///< the remedy of what is missing; empty: nothing is
  std::string unknown = {};  ///< the command that shows what is unknown
};

void judgeDriver(const View& view, MigrationState& state) {
  const std::string driver(mlx5MigrationDriver);
  const auto found = driverState(view);
  const auto kernel = view.kernelVersion();
  state.seen.push_back(driver + " " + (found ? printable(*found) : "unknown") + " (Linux " +
                       versionText(kernel) + ")");
  if (found == "absent") {
    state.fault =
        "boot a kernel with CONFIG_MLX5_VFIO_PCI, which Debian's kernels do not set, or use "
        "teaming: instead of migration: in the mapping";
  } else if (isOlder(kernel, kernelWithMigratable)) {
    state.fault = "boot Linux 6.2 or newer, or use teaming: instead of migration: in the mapping";
  } else if (!found) {
    state.unknown = "modinfo " + driver;
  }
}

// Whether the next boot takes the migration away that the card can do now.
bool isLostAtBoot(const FirmwareSettings& settings, const FirmwareJudgement& judgement) {
  const auto mode = settings.find(modeSetting);
  return mode != settings.end() && !judgement.toSet.empty() && !mode->second.current.empty() &&
         mode->second.current != mode->second.nextBoot;
}

// The remedy where the firmware does not save VFs; empty: its settings say that it does.
std::string firmwareRemedy(const Device& pf, const FirmwareSettings& settings,
                           const FirmwareJudgement& judgement, bool isRefused) {
  if (settings.empty() || judgement.unknown) {
    return setFirmware(pf.address,
                       {std::string(modeSetting) + "=" + std::to_string(migrationEnabled)});
  }
  if (settings.contains(modeSetting) && !judgement.toSet.empty()) {
    return setFirmware(pf.address, judgement.toSet);
  }
  if (settings.contains(modeSetting) && judgement.pending) {
    return "power-cycle the machine";
  }
  return !isRefused && settings.contains(modeSetting)
             ? ""
             : "install firmware that migrates VFs: 28.41.1000 of a ConnectX-7, 32.41.1000 of a "
               "BlueField-3, or newer";
}

// mlx5 shows `migratable` if the firmware reports the capability, which is in effect then
// (mlx5_devlink_port_fn_migratable_get). It does so only in switchdev mode; without that, and for
// the next boot, the firmware's settings tell.
void judgeFirmware(const View& view, const Device& pf, MigrationState& state) {
  const auto settings = firmwareSettingsOf(view, pf);
  const FirmwareJudgement judgement = judge({{modeSetting, migrationEnabled}}, settings);
  state.seen.push_back(settings.empty() ? std::string(modeSetting) + " unknown"
                                        : join(judgement.seen, ", "));
  const auto isMigratable = isMigratableInDevlink(view, pf);
  if (isMigratable) {
    state.seen.push_back(*isMigratable ? "devlink has `migratable`"
                                       : "devlink has no `migratable`");
  }
  if (isMigratable == true && !isLostAtBoot(settings, judgement)) {
    return;
  }
  if (!isMigratable && (settings.empty() || judgement.unknown)) {
    state.unknown = "sudo mstconfig -e -d " + toString(pf.address) + " query " + modeSetting;
  } else if (state.fault.empty()) {
    state.fault = firmwareRemedy(pf, settings, judgement, isMigratable.has_value());
  }
}

// attach refuses it, too (plan::checkMigration).
void failOtherDriver(const Device& pf, const Requirement& requirement, Results& results) {
  results.failed(nameOf(pf),
                 "a NIC of mlx5_core: " + requirement.vm + ", " + requirement.entry +
                     " has `migration: vfio`, and vfpass knows no other driver that migrates a VF",
                 "driver " + (pf.driver.empty() ? "none" : printable(pf.driver)),
                 "remove migration: from the mapping, or choose a PF of a ConnectX-7 or "
                 "BlueField-3");
}

}  // namespace

std::string withoutMigration(const View& view) {
  return std::ranges::any_of(view.requirements().vfs, &Requirement::migration)
             ? ""
             : "no mapping has `migration: vfio`";
}

void checkMigration(const View& view, Results& results) {
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    const Requirement* requirement = migrationOf(view, pf);
    if (requirement == nullptr) {
      continue;
    }
    if (!hasMlx5Firmware(pf.vendor, pf.driver)) {
      failOtherDriver(pf, *requirement, results);
      continue;
    }
    const std::string expected = std::string(mlx5MigrationDriver) + " of Linux 6.2 or newer, " +
                                 modeSetting + "=" + std::to_string(migrationEnabled) + ": " +
                                 requirement->vm + ", " + requirement->entry +
                                 " has `migration: vfio`";
    MigrationState state;
    judgeDriver(view, state);
    judgeFirmware(view, pf, state);
    const std::string seen = join(state.seen, ", ");
    if (!state.fault.empty()) {
      results.failed(nameOf(pf), expected, seen, state.fault);
    } else if (!state.unknown.empty()) {
      results.notObservable(nameOf(pf), expected, seen, state.unknown);
    } else {
      results.passed(nameOf(pf), expected, seen);
    }
  }
}

}  // namespace vfpass::doctor
