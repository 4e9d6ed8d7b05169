#include <algorithm>
#include <array>

#include "check.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::uint16_t blueField1 = 0xa2d2;
constexpr std::uint16_t blueField2 = 0xa2d6;
constexpr const char* engine = "INTERNAL_CPU_OFFLOAD_ENGINE";

bool isBlueField(const TopologyFunction& function) {
  return vfpass::isBlueField(function.vendor, function.device);
}

std::string withoutBlueField(const View& view) {
  return std::ranges::any_of(view.pfs(),
                             [&](std::size_t pf) { return isBlueField(view.function(pf)); })
             ? ""
             : "no BlueField";
}

std::string nicModeOf(const TopologyFunction& pf) {
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
DpuMode modeOf(const View& view, const TopologyFunction& pf) {
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
    const TopologyFunction& pf = view.function(number);
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

constexpr std::array checks{
    Check{"dpu-mode",
          "in DPU mode the card's own processor manages the VFs: the host can neither set their "
          "attributes nor create representors, and they reach the wire only by rules on the card",
          withoutBlueField, checkDpuMode}};

}  // namespace

std::span<const Check> dpuChecks() { return checks; }

}  // namespace vfpass::doctor
