#include <algorithm>
#include <array>

#include "check.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/link_settings.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::chrono::milliseconds patience{2000};

// devlink knows no eswitch of InfiniBand ports.
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

std::optional<std::string> modeOf(const View& view, const TopologyFunction& pf) {
  return view.answer("devlink/" + toString(pf.address) + "/eswitch-mode",
                     [&]() -> std::optional<std::string> {
                       try {
                         const auto mode = host::readEswitchMode(pf.address, patience);
                         return mode ? std::optional(std::string(toString(*mode))) : std::nullopt;
                       } catch (const Error&) {  // it hangs, or devlink makes no sense
                         return std::nullopt;
                       }
                     });
}

const Wish* wishFor(const View& view, const TopologyFunction& pf) {
  const auto& wishes = view.wishes().vfs;
  const auto strict = std::ranges::find_if(
      wishes, [&](const Wish& wish) { return wish.pf == pf.address && !wish.legacyOnly.empty(); });
  const auto any = std::ranges::find(wishes, pf.address, &Wish::pf);
  return strict != wishes.end() ? &*strict : any != wishes.end() ? &*any : nullptr;
}

std::string nameOf(const Wish& wish) { return wish.vm + ", " + wish.entry; }

// In switchdev mode a VF reaches the wire only through rules for its representor on the host, and
// nobody makes them unless the administrator does.
std::pair<std::string, std::string> expectedMode(const View& view, const TopologyFunction& pf) {
  const Wish* wish = wishFor(view, pf);
  if (wish != nullptr && !wish->legacyOnly.empty()) {
    return {"legacy",
            "legacy, as " + nameOf(*wish) + " insists on " + join(wish->legacyOnly, ", ")};
  }
  const auto policy = view.wishes().eswitchModes.find(pf.address);
  if (policy != view.wishes().eswitchModes.end()) {
    return {policy->second, policy->second + ", as host.yaml says"};
  }
  if (wish != nullptr) {
    return {"legacy",
            "legacy, as host.yaml does not say switchdev and " + nameOf(*wish) + " gets VFs here"};
  }
  return {"", "legacy or switchdev"};
}

void checkMode(const View& view, Results& results) {
  for (const std::size_t number : view.pfs()) {
    const TopologyFunction& pf = view.function(number);
    if (!hasEswitch(pf)) {
      continue;
    }
    const auto [wanted, expected] = expectedMode(view, pf);
    const auto mode = modeOf(view, pf);
    const std::string device = "pci/" + toString(pf.address);
    if (!mode || (*mode != "legacy" && *mode != "switchdev")) {
      results.unseen(doctor::nameOf(pf), expected, "devlink shows no eswitch mode",
                     "sudo devlink dev eswitch show " + device);
    } else if (wanted.empty() || *mode == wanted) {
      results.passed(doctor::nameOf(pf), expected, *mode);
    } else {
      results.failed(doctor::nameOf(pf), expected, *mode,
                     "devlink dev eswitch set " + device + " mode " + wanted +
                         "  # for good: embedded-switch-mode in host.yaml");
    }
  }
}

constexpr std::array checks{
    Check{"eswitch", "in switchdev mode VFs have no VLAN or spoof check, and no way to the wire",
          withoutEswitch, checkMode}};

}  // namespace

std::span<const Check> eswitchChecks() { return checks; }

}  // namespace vfpass::doctor
