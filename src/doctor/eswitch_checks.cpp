#include <algorithm>
#include <array>
#include <cerrno>

#include "check.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/link_settings.hpp"

namespace vfpass::doctor {
namespace {

// devlink has no eswitch for InfiniBand ports.
bool hasEswitch(const TopologyFunction& pf) {
  const bool infiniband = !pf.rdma.empty() && !pf.rdma.front().ports.empty() &&
                          pf.rdma.front().ports.front().linkLayer == LinkLayer::infiniband;
  return pf.totalVfs > 0 && !infiniband;
}

std::string withoutEswitch(const View& view) {
  return std::ranges::any_of(view.pfs(),
                             [&](std::size_t pf) { return hasEswitch(view.function(pf)); })
             ? ""
             : "no Ethernet PF with SR-IOV";
}

const Requirement* requirementFor(const View& view, const TopologyFunction& pf) {
  const auto& requirements = view.requirements().vfs;
  const auto strict = std::ranges::find_if(requirements, [&](const Requirement& requirement) {
    return requirement.pf == pf.address && !requirement.legacyOnly.empty();
  });
  const auto any = std::ranges::find(requirements, pf.address, &Requirement::pf);
  return strict != requirements.end() ? &*strict : any != requirements.end() ? &*any : nullptr;
}

std::string nameOf(const Requirement& requirement) {
  return requirement.vm + ", " + requirement.entry;
}

// In switchdev mode a VF reaches the wire only through rules for its representor on the host, which
// the administrator has to add.
std::pair<std::string, std::string> expectedMode(const View& view, const TopologyFunction& pf) {
  const Requirement* requirement = requirementFor(view, pf);
  if (requirement != nullptr && !requirement->legacyOnly.empty()) {
    return {"legacy",
            "legacy: " + nameOf(*requirement) + " requires " + join(requirement->legacyOnly, ", ")};
  }
  const auto policy = view.requirements().eswitchModes.find(pf.address);
  if (policy != view.requirements().eswitchModes.end()) {
    return {policy->second, policy->second + ": set in host.yaml"};
  }
  if (requirement != nullptr) {
    return {"legacy", "legacy: host.yaml does not set switchdev, and " + nameOf(*requirement) +
                          " uses VFs of this PF"};
  }
  return {"", "legacy or switchdev"};
}

// Not devlink: it changes the mode under VMs that use the PF's VFs, while host apply refuses to.
std::string modeRemedy(const View& view, const TopologyFunction& pf, const std::string& wanted) {
  const auto policy = view.requirements().eswitchModes.find(pf.address);
  const bool isSet = policy != view.requirements().eswitchModes.end() && policy->second == wanted;
  return isSet ? "vfpass host apply"
               : "set embedded-switch-mode: " + wanted + " for PF " + toString(pf.address) +
                     " in host.yaml, then run vfpass host apply";
}

void checkMode(const View& view, Results& results) {
  for (const std::size_t number : view.pfs()) {
    const TopologyFunction& pf = view.function(number);
    if (!hasEswitch(pf)) {
      continue;
    }
    const auto [wanted, expected] = expectedMode(view, pf);
    const auto mode = eswitchModeOf(view, pf);
    const std::string device = "pci/" + toString(pf.address);
    if (mode == "denied") {
      results.notObservable(doctor::nameOf(pf), expected, "the driver denies the host access to it",
                            "vfpass doctor  # dpu-mode says why on a BlueField");
    } else if (!mode || (*mode != "legacy" && *mode != "switchdev")) {
      results.notObservable(doctor::nameOf(pf), expected, "devlink shows no eswitch mode",
                            "sudo devlink dev eswitch show " + device);
    } else if (wanted.empty() || *mode == wanted) {
      results.passed(doctor::nameOf(pf), expected, *mode);
    } else {
      results.failed(doctor::nameOf(pf), expected, *mode, modeRemedy(view, pf, wanted));
    }
  }
}

constexpr std::array checks{
    Check{"eswitch",
          "in switchdev mode VFs have no VLAN, no spoof check, and need rules to reach the wire",
          withoutEswitch, checkMode}};

}  // namespace

std::optional<std::string> eswitchModeOf(const View& view, const TopologyFunction& pf) {
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

std::span<const Check> eswitchChecks() { return checks; }

}  // namespace vfpass::doctor
