#include <algorithm>
#include <cctype>
#include <map>

#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::report {
namespace {

std::string countFile(const PhysicalFunction& pf) {
  return "/sys/bus/pci/devices/" + toString(pf.address) + "/sriov_numvfs";
}

// The kernel changes a count only by way of 0, which would take the VFs from their users.
std::string creation(const PhysicalFunction& pf) {
  const std::string file = countFile(pf);
  return "[ \"$(cat " + file + ")\" -gt 0 ] || echo " + std::to_string(pf.vfs.size()) + " > " +
         file;
}

std::string_view stateWord(LinkState state) {
  return state == LinkState::automatic ? "auto" : toString(state);
}

std::string vlanWords(const Vlan& vlan) {
  std::string words = " vlan " + std::to_string(vlan.id);
  if (vlan.qos != 0) {
    words += " qos " + std::to_string(vlan.qos);
  }
  return vlan.protocol == VlanProtocol::dot1ad ? words + " proto 802.1ad" : words;
}

// The words of ip-link(8). libvirt sets MAC and VLAN of an <interface> itself.
std::vector<std::string> settingWords(const Lease& lease) {
  const VfSettings settings = acceptedSettings(lease);
  std::vector<std::string> words;
  if (settings.mac && !isInterface(lease)) {
    words.push_back(" mac " + toString(*settings.mac));
  }
  if (settings.vlan && !isInterface(lease)) {
    words.push_back(vlanWords(*settings.vlan));
  }
  if (settings.rate && *settings.rate != Rate{}) {
    words.push_back(" max_tx_rate " + std::to_string(settings.rate->max) + " min_tx_rate " +
                    std::to_string(settings.rate->min));
  }
  if (settings.spoofCheck) {
    words.push_back(" spoofchk " + onOff(*settings.spoofCheck));
  }
  if (settings.linkState) {
    words.push_back(" state " + std::string(stateWord(*settings.linkState)));
  }
  if (settings.trust) {
    words.push_back(" trust " + onOff(*settings.trust));
  }
  if (settings.nodeGuid) {
    words.push_back(" node_guid " + toString(*settings.nodeGuid));
  }
  if (settings.portGuid) {
    words.push_back(" port_guid " + toString(*settings.portGuid));
  }
  return words;
}

// systemd.unit(5): a unit's name for a device file.
std::string deviceUnit(const std::string& netdev) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name = "sys-subsystem-net-devices-";
  for (const char letter : netdev) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || letter == '_' || letter == ':' || letter == '.') {
      name += letter;
    } else {
      name += std::string("\\x") + digits[byte >> 4U] + digits[byte & 15U];
    }
  }
  return name + ".device";
}

// A `%` of a unit begins a specifier (systemd.unit(5)).
std::string unitText(const std::string& text) {
  std::string doubled;
  for (const char letter : text) {
    doubled += std::string(letter == '%' ? 2 : 1, letter);
  }
  return doubled;
}

// In a command systemd also expands `$`, and reads escapes (systemd.service(5)).
std::string unitCommand(const std::string& command) {
  std::string text;
  for (const char letter : unitText(command)) {
    text += letter == '$'                     ? std::string(2, letter)
            : letter == '"' || letter == '\\' ? std::string("\\") + letter
                                              : std::string(1, letter);
  }
  return "ExecStart=/bin/sh -c \"" + text + "\"\n";
}

std::string unitFor(const std::string& domainName, const std::vector<std::string>& devices,
                    const std::vector<std::string>& commands) {
  // A line that ends in `\` goes on in the next one (systemd.syntax(7)), so the name is not its
  // end.
  std::string text = "[Unit]\nDescription=VM " + unitText(printableLine(domainName)) +
                     ": virtual functions\nBefore=libvirtd.service virtqemud.service\n";
  if (!devices.empty()) {
    text += "Wants=" + join(devices, " ") + "\nAfter=" + join(devices, " ") + "\n";
  }
  text += "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n";
  for (const std::string& command : commands) {
    text += unitCommand(command);
  }
  return text + "\n[Install]\nWantedBy=multi-user.target\n";
}

// Other letters would need escapes in a shell. With them, or beyond a length, the UUID keeps the
// units of two VMs apart.
std::string unitNameFor(const std::string& domainName, const Uuid& domain) {
  std::string name;
  for (const char letter : domainName.substr(0, 64)) {
    const auto byte = static_cast<unsigned char>(letter);
    name += std::isalnum(byte) != 0 || letter == '_' || letter == '.' ? letter : '-';
  }
  return "vfs-of-" + name + (name == domainName ? "" : "-" + toString(domain).substr(0, 8)) +
         ".service";
}

}  // namespace

KeptDevices keptDevices(const std::string& domainName, const std::vector<Lease>& leases,
                        const Inventory& inventory) {
  KeptDevices kept;
  std::vector<std::string> settings;
  std::map<PciAddress, std::string> netdevs;
  for (const Lease& lease : leases) {
    const PhysicalFunction* pf = findPf(inventory, lease);
    if (pf == nullptr || pf->vfs.empty()) {
      continue;
    }
    if (netdevs.emplace(pf->address, pf->netdev()).second) {
      kept.commands.push_back(creation(*pf));
    }
    for (const std::string& words : settingWords(lease)) {
      if (!pf->netdev().empty()) {
        settings.push_back("ip link set dev " + shellArgument(pf->netdev()) + " vf " +
                           std::to_string(vfOf(lease).index) + words);
      }
    }
  }
  if (kept.commands.empty()) {
    return kept;
  }
  kept.commands.insert(kept.commands.end(), settings.begin(), settings.end());
  std::vector<std::string> devices;
  for (const auto& [address, netdev] : netdevs) {
    if (!netdev.empty()) {
      devices.push_back(deviceUnit(netdev));
    }
  }
  kept.unitName = unitNameFor(domainName, leases.front().domain);
  kept.unit = unitFor(domainName, devices, kept.commands);
  return kept;
}

}  // namespace vfpass::report
