#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "attach_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/topology/pcie_link.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {
namespace {

// x-speed and x-width of pcie-root-port since QEMU 4.0; 32 and 64 GT/s since 9.0 (QAPI's
// PCIELinkSpeed, qapi/common.json). xio3130-downstream and x3130-upstream have neither.
constexpr Version qemuWithLinkSpeeds{4, 0};
constexpr Version qemuWithGen5{9, 0};
constexpr Version libvirtWithOverride{8, 2};
constexpr unsigned fastestBeforeGen5 = 16000;

constexpr std::array<std::pair<unsigned, const char*>, 6> speedWords{
    {{2500, "2_5"}, {5000, "5"}, {8000, "8"}, {16000, "16"}, {32000, "32"}, {64000, "64"}}};
constexpr std::array<unsigned, 7> portWidths{1, 2, 4, 8, 12, 16, 32};

constexpr const char* requestName = "`link-speeds: host`";

const char* speedWord(unsigned speed) {
  const auto* const found =
      std::ranges::find(speedWords, speed, &std::pair<unsigned, const char*>::first);
  return found == speedWords.end() ? nullptr : found->second;
}

bool isSettable(const PcieLink& link) {
  return speedWord(link.speed) != nullptr &&
         std::ranges::find(portWidths, link.width) != portWidths.end();
}

// What the host's own NCCL computes with: the lower speed and width of the two ends, whatever the
// link runs at now (ncclTopoGetXmlFromSys reads max_link_speed and max_link_width of both).
PcieLink hostLink(const AttachInput& input, const Lease& lease) {
  const Device* function = hostFunction(input, lease);
  if (function == nullptr) {
    return {};
  }
  const auto number = static_cast<std::size_t>(function - input.topology.functions.data());
  return topology::linkAbove(input.topology, number).possible;
}

struct Port {
  std::string alias;  ///< empty: not a root port of vfpass
  bool ofSwitch = false;
};

// The port that the device is directly behind.
Port portOf(const Lease& lease) {
  if (lease.guest.port) {
    return {portAlias(lease)};
  }
  for (const GuestController& controller : lease.guest.controllers) {
    if (controller.index == lease.guest.address.bus) {
      const bool root = controller.model == ControllerModel::rootPort;
      return {root ? controllerAlias(controller) : "", !root};
    }
  }
  return {};
}

std::string propertyElement(const char* name, const std::string& value) {
  return std::string("<qemu:property name='") + name + "' type='string' value='" + value + "'/>";
}

std::string overrideOf(const std::string& alias, const PcieLink& link) {
  return "<qemu:device alias='" + alias + "'><qemu:frontend>" +
         propertyElement("x-speed", speedWord(link.speed)) +
         propertyElement("x-width", std::to_string(link.width)) + "</qemu:frontend></qemu:device>";
}

// The ports of the domain's devices, and those whose links the guest cannot see.
struct PortLinks {
  std::map<std::string, std::pair<std::string, PcieLink>> settable;  ///< entry and link, by alias
  std::vector<std::string> administrators;  ///< entries whose port has an override of the domain's
  std::vector<std::string> behindSwitches;
  std::vector<std::string> slower;  ///< `gpu0 Gen4 x16 instead of Gen5 x16`
  std::vector<std::string> unknown;
};

void addPort(const AttachInput& input, const Lease& lease, PortLinks& links) {
  const Port port = portOf(lease);
  PcieLink link = hostLink(input, lease);
  if (port.ofSwitch) {
    links.behindSwitches.push_back(lease.entry);
  } else if (port.alias.empty()) {
    return;
  } else if (input.ownLinkSpeeds.contains(port.alias)) {
    links.administrators.push_back(lease.entry);
  } else if (!isSettable(link)) {
    links.unknown.push_back(lease.entry);
  } else {
    const bool knowsGen5 = input.versions.qemu && !isOlder(input.versions.qemu, qemuWithGen5);
    const std::string whole = topology::linkText(link);
    link.speed = knowsGen5 ? link.speed : std::min(link.speed, fastestBeforeGen5);
    if (const std::string shown = topology::linkText(link); shown != whole) {
      links.slower.push_back(lease.entry + " " + shown + " instead of " + whole);
    }
    links.settable[port.alias] = {lease.entry, link};
  }
}

void noteHidden(const AttachInput& input, const PortLinks& links, std::vector<std::string>& notes) {
  const std::string begin = std::string(requestName) + ": ";
  if (!links.behindSwitches.empty()) {
    notes.push_back(
        begin + "QEMU's switch ports (x3130) show 2.5 GT/s x1 and cannot be set: " +
        join(links.behindSwitches, ", ") + (links.behindSwitches.size() == 1 ? " needs" : " need") +
        " NCCL's topology file (`vfpass guest-setup " + shellArgument(input.domainName) + "`)");
  }
  if (!links.slower.empty()) {
    notes.push_back(begin + "speeds above 16 GT/s need QEMU 9.0, and this host has QEMU " +
                    versionText(input.versions.qemu) + ": " + join(links.slower, ", "));
  }
  if (!links.unknown.empty()) {
    notes.push_back(begin + "the host reports no link for " + join(links.unknown, ", ") +
                    ": the ports keep QEMU's speed and width");
  }
}

std::optional<Objection> linkSpeedsUnsupported(const AttachInput& input) {
  const auto& [libvirt, qemu] = input.versions;
  if (!isOlder(libvirt, libvirtWithOverride) && !isOlder(qemu, qemuWithLinkSpeeds)) {
    return std::nullopt;
  }
  return Objection{std::string(requestName) +
                       " needs <qemu:override> (libvirt 8.2) and x-speed of pcie-root-port (QEMU "
                       "4.0); this host has libvirt " +
                       versionText(libvirt) + " and QEMU " + versionText(qemu),
                   "upgrade them, or remove `link-speeds:`", ExitCode::badInput};
}

DomainSetting settingFor(const PortLinks& links) {
  DomainEdit edit{std::string(linkSpeedsSetting), EditPlace::qemuOverride, {}};
  std::vector<std::string> shown;
  for (const auto& [alias, port] : links.settable) {
    edit.elements.push_back(overrideOf(alias, port.second));
    shown.push_back(port.first + " " + topology::linkText(port.second));
  }
  return {std::string(linkSpeedsSetting), "x-speed and x-width of root ports: " + join(shown, ", "),
          "the mapping requests it: QEMU's ports show 16 GT/s x32, and NCCL takes the lower speed "
          "of port and device; libvirt marks the domain as tainted (custom-device)",
          SettingStanding::proposed, edit};
}

}  // namespace

std::vector<DomainSetting> linkSpeedSettings(const AttachInput& input, AttachDecision& decision) {
  if (!input.mapping.hostLinkSpeeds) {
    return {};
  }
  if (const auto objection = linkSpeedsUnsupported(input)) {
    decision.objections.push_back(*objection);
  }
  if (!decision.objections.empty()) {
    return {};  // the devices may have no places
  }
  PortLinks links;
  for (const Lease& lease : decision.leases) {
    if (lease.persistent && !isAdopted(lease)) {
      addPort(input, lease, links);
    }
  }
  noteHidden(input, links, decision.plan.notes);
  std::vector<DomainSetting> settings;
  if (!links.administrators.empty()) {
    settings.push_back({std::string(linkSpeedsSetting),
                        "x-speed and x-width of the ports of " + join(links.administrators, ", "),
                        "the domain has overrides of its own for these ports",
                        SettingStanding::administrators});
  }
  if (!links.settable.empty()) {
    settings.push_back(settingFor(links));
  }
  return settings;
}

}  // namespace vfpass::plan
