#include <algorithm>
#include <array>
#include <cerrno>

#include "check.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/link_settings.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::uint16_t blueField1 = 0xa2d2;
constexpr std::uint16_t blueField2 = 0xa2d6;
constexpr const char* engine = "INTERNAL_CPU_OFFLOAD_ENGINE";

bool isBlueField(const Device& function) {
  return vfpass::isBlueField(function.vendor, function.device);
}

std::string withoutBlueField(const View& view) {
  return unlessAnyPf(view, isBlueField, "no BlueField");
}

std::string nicModeOf(const Device& pf) {
  const bool early = pf.device == blueField1 || pf.device == blueField2;
  return "mstconfig -d " + toString(pf.address) + " set " +
         (early ? "INTERNAL_CPU_MODEL=1 INTERNAL_CPU_PAGE_SUPPLIER=1 "
                  "INTERNAL_CPU_ESWITCH_MANAGER=1 INTERNAL_CPU_IB_VPORT0=1 "
                : "") +
         engine + "=1, then power-cycle the machine  # NIC mode";
}

enum class EngineState { unknown, dpu, nic };

// 0: the embedded CPU's engine is enabled (DPU mode), 1: disabled (NIC mode).
EngineState engineState(const std::string& value) {
  const auto number = numberOf(value).value_or(2);
  return number == 0 ? EngineState::dpu : number == 1 ? EngineState::nic : EngineState::unknown;
}

struct DpuMode {
  EngineState now = EngineState::unknown;
  bool nicNext = false;  ///< NIC mode from the next boot on
  std::string seen;
};

// devlink shows what is in effect; in InfiniBand mode and without root only the firmware tells.
DpuMode modeOf(const View& view, const Device& pf) {
  const auto settings = firmwareSettingsOf(view, pf);
  const auto setting = settings.find(engine);
  const FirmwareSetting known = setting == settings.end() ? FirmwareSetting{} : setting->second;
  const bool nicNext = engineState(known.nextBoot) == EngineState::nic;
  const auto eswitch = eswitchModeOf(view, pf);
  if (eswitch == "legacy" || eswitch == "switchdev") {
    return {EngineState::nic, nicNext, "the host manages the embedded switch"};
  }
  if (eswitch == "denied") {
    return {EngineState::dpu, nicNext,
            "DPU mode: the driver denies the host access to the embedded switch"};
  }
  const EngineState now = engineState(known.current);
  if (now == EngineState::unknown) {
    return {
        now, nicNext,
        eswitch == "unsupported"
            ? "the driver does not let the host manage the embedded switch, as in DPU mode; the "
              "firmware settings are unknown"
            : "neither devlink nor the firmware settings show the mode"};
  }
  return {now, nicNext,
          std::string(now == EngineState::nic ? "NIC mode: " : "DPU mode: ") + engine + " " +
              known.current};
}

void checkDpuMode(const View& view, Results& results) {
  const std::string expected = "NIC mode, in which the host manages the VFs";
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    if (!isBlueField(pf)) {
      continue;
    }
    const DpuMode mode = modeOf(view, pf);
    if (mode.now == EngineState::unknown) {
      results.notObservable(nameOf(pf), expected, mode.seen,
                            "sudo mstconfig -d " + toString(pf.address) + " query " + engine);
    } else if (mode.now == EngineState::nic) {
      results.passed(nameOf(pf), expected, mode.seen);
    } else {
      results.failedIfUsed(view.uses(number), nameOf(pf), expected,
                           mode.seen + (mode.nicNext ? "; NIC mode from the next boot on" : ""),
                           mode.nicNext ? "power-cycle the machine" : nicModeOf(pf));
    }
  }
}

bool isMode(const std::optional<std::string>& mode) {
  return mode == "legacy" || mode == "switchdev";
}

// devlink has no eswitch for InfiniBand ports. Of other drivers than mlx5 only some have one.
bool hasEswitch(const View& view, const Device& pf) {
  const RdmaPort* port = pf.rdmaPort();
  return pf.totalVfs > 0 && (port == nullptr || port->linkLayer != LinkLayer::infiniband) &&
         (hasMlx5Firmware(pf.vendor, pf.driver) || isMode(eswitchModeOf(view, pf)));
}

std::string withoutEswitch(const View& view) {
  return std::ranges::any_of(view.pfs(),
                             [&](std::size_t pf) { return hasEswitch(view, view.function(pf)); })
             ? ""
             : "no Ethernet PF with SR-IOV and an embedded switch";
}

// The requirement for this PF that leaves the least choice.
const Requirement* requirementFor(const View& view, const Device& pf) {
  const auto& requirements = view.requirements().vfs;
  const auto first = [&](auto isSuch) {
    const auto found = std::ranges::find_if(requirements, [&](const Requirement& requirement) {
      return requirement.pf == pf.address && isSuch(requirement);
    });
    return found == requirements.end() ? nullptr : &*found;
  };
  if (const auto* legacy = first([](const auto& each) { return !each.legacyOnly.empty(); })) {
    return legacy;
  }
  const auto* migrating = first([](const auto& each) { return each.migration; });
  return migrating != nullptr ? migrating : first([](const auto&) { return true; });
}

std::string entryOf(const Requirement& requirement) {
  return requirement.vm + ", " + requirement.entry;
}

// In switchdev mode a VF reaches the wire only through rules for its representor on the host, which
// the administrator has to add.
std::pair<std::string, std::string> expectedMode(const View& view, const Device& pf) {
  const Requirement* requirement = requirementFor(view, pf);
  if (requirement != nullptr && !requirement->legacyOnly.empty()) {
    return {"legacy", "legacy: " + entryOf(*requirement) + " requires " +
                          join(requirement->legacyOnly, ", ")};
  }
  const auto policy = view.requirements().eswitchModes.find(pf.address);
  // A snapshot's requirements name no VM (requireEverything()).
  if (requirement != nullptr && requirement->migration && !requirement->vm.empty()) {
    return {"switchdev", "switchdev: " + entryOf(*requirement) + " has `migration: vfio`"};
  }
  if (policy != view.requirements().eswitchModes.end()) {
    return {policy->second, policy->second + ": set in host.yaml"};
  }
  if (requirement != nullptr) {
    return {"legacy", "legacy: host.yaml does not set switchdev, and " + entryOf(*requirement) +
                          " uses VFs of this PF"};
  }
  return {"", "legacy or switchdev"};
}

// Not devlink: it changes the mode under VMs that use the PF's VFs, while host apply refuses to.
std::string modeRemedy(const View& view, const Device& pf, const std::string& wanted) {
  const auto policy = view.requirements().eswitchModes.find(pf.address);
  const bool isSet = policy != view.requirements().eswitchModes.end() && policy->second == wanted;
  return isSet ? "vfpass host apply"
               : "set embedded-switch-mode: " + wanted + " for PF " + toString(pf.address) +
                     " in host.yaml, then run vfpass host apply";
}

void checkMode(const View& view, Results& results) {
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    if (!hasEswitch(view, pf)) {
      continue;
    }
    const auto [wanted, expected] = expectedMode(view, pf);
    const auto mode = eswitchModeOf(view, pf);
    const std::string device = "pci/" + toString(pf.address);
    if (mode == "denied") {
      results.notObservable(nameOf(pf), expected, "the driver denies the host access to it",
                            "vfpass doctor  # dpu-mode says why on a BlueField");
    } else if (!isMode(mode)) {
      results.notObservable(nameOf(pf), expected, "devlink shows no eswitch mode",
                            "sudo devlink dev eswitch show " + device);
    } else if (wanted.empty() || *mode == wanted) {
      results.passed(nameOf(pf), expected, *mode);
    } else {
      results.failed(nameOf(pf), expected, *mode, modeRemedy(view, pf, wanted));
    }
  }
}

constexpr std::array eswitchTable{
    Check{"dpu-mode",
          "in DPU mode the card's own processor manages the VFs: the host can neither set their "
          "attributes nor create representors, and they reach the wire only by rules on the card",
          withoutBlueField, checkDpuMode},

    Check{"eswitch",
          "in switchdev mode VFs have no VLAN, no spoof check, and need rules to reach the wire",
          withoutEswitch, checkMode},

    Check{"vf-migration",
          "a guest keeps its VF while it migrates only if the VF's driver and the card's firmware "
          "save its state",
          withoutMigration, checkMigration}};

}  // namespace

std::optional<std::string> eswitchModeOf(const View& view, const Device& pf) {
  return view.answer(
      "devlink/" + toString(pf.address) + "/eswitch-mode", [&]() -> std::optional<std::string> {
        try {
          if (const auto mode = host::readEswitchMode(pf.address, deadlines::doctorNetlink)) {
            return std::string(toString(*mode));
          }
          const int refusal = host::eswitchRefusal(pf.address, deadlines::doctorNetlink);
          return refusal == EPERM        ? std::optional<std::string>("denied")
                 : refusal == EOPNOTSUPP ? std::optional<std::string>("unsupported")
                                         : std::nullopt;
        } catch (const Error&) {  // timeout, or invalid reply
          return std::nullopt;
        }
      });
}

std::span<const Check> eswitchChecks() { return eswitchTable; }

}  // namespace vfpass::doctor
