#include "guest_files.hpp"

#include <nettle/sha2.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "vfpass/base/text.hpp"

namespace vfpass::setup {
namespace {

// Without a renderer here netplan uses the global one of its files, networkd by default.
std::optional<std::string> rendererOf(const SetupView& view) {
  const std::string networkd = "networkd";
  const std::string networkManager = "NetworkManager";
  const bool runsNetworkd = view.running.contains("systemd-networkd");
  if (runsNetworkd != view.running.contains("NetworkManager")) {
    return runsNetworkd ? networkd : networkManager;
  }
  // `netplan status` starts networkd, so keep the renderer that an earlier run chose.
  const auto current = view.files.find(netplanFile);
  for (const std::string& name : {networkd, networkManager}) {
    if (current != view.files.end() &&
        current->second.content.find("      renderer: " + name + "\n") != std::string::npos) {
      return name;
    }
  }
  return std::nullopt;
}

// An IPoIB interface is matched by name, because the first bytes of its address change whenever the
// driver is loaded. An Ethernet interface gets the mapping's name with set-name, or else keeps its
// current one: the .link file that netplan writes for the MTU hides the one that names the
// interface, which would otherwise be eth0 at the next boot.
void writeMatch(YAML::Emitter& out, const PlacedPort& port) {
  if (port.wanted.infiniband) {
    out << YAML::Key << port.netdev.name << YAML::BeginMap;
    out << YAML::Key << "infiniband-mode" << YAML::Value << "datagram";
    return;
  }
  out << YAML::Key << "vfpass-" + port.wanted.entry << YAML::BeginMap;
  out << YAML::Key << "match" << YAML::Flow << YAML::BeginMap;
  // Unquoted, YAML 1.1 could read an address of digits only as a number to the base of 60.
  out << YAML::Key << "macaddress" << YAML::DoubleQuoted << port.wanted.address << YAML::EndMap;
  out << YAML::Key << "set-name" << YAML::Value << port.name;
}

void writePort(YAML::Emitter& out, const PlacedPort& port,
               const std::optional<std::string>& renderer) {
  writeMatch(out, port);
  if (renderer) {
    out << YAML::Key << "renderer" << YAML::Value << *renderer;
  }
  out << YAML::Key << "optional" << YAML::Value << true;
  out << YAML::Key << "dhcp4" << YAML::Value << false;
  out << YAML::Key << "dhcp6" << YAML::Value << false;
  const GuestNetwork& network = port.wanted.network;
  if (network.address) {
    out << YAML::Key << "addresses" << YAML::Flow << YAML::BeginSeq;
    out << YAML::DoubleQuoted << *network.address << YAML::EndSeq;
  }
  if (network.mtu) {
    out << YAML::Key << "mtu" << YAML::Value << *network.mtu;
  }
  out << YAML::EndMap;
}

/// The netplan configuration of these ports, without the comment that marks the file as ours.
std::string netplanText(const std::vector<PlacedPort>& ports, const SetupView& view) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "network" << YAML::BeginMap;
  out << YAML::Key << "version" << YAML::Value << 2;
  out << YAML::Key << "ethernets" << YAML::BeginMap;
  const auto renderer = rendererOf(view);
  for (const PlacedPort& port : ports) {
    writePort(out, port, renderer);
  }
  out << YAML::EndMap << YAML::EndMap << YAML::EndMap;
  return std::string(out.c_str(), out.size()) + "\n";
}

constexpr const char* persistence = "addresses and MTU that persist across reboots";

bool isVersion6(const std::string& address) { return address.find(':') != std::string::npos; }

WantedFile netplan(const std::vector<PlacedPort>& ports, const SetupView& view) {
  // netplan warns about files that others can read.
  return {netplanFile, writtenBy + netplanText(ports, view), 0600, persistence};
}

// Deterministic for a domain and entry, so that a second run changes nothing (RFC 9562, version 8).
std::string connectionUuid(const Uuid& domain, const std::string& entry) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, domain.bytes.size(), domain.bytes.data());
  sha256_update(&context, entry.size(), reinterpret_cast<const std::uint8_t*>(entry.data()));
  Uuid uuid;
  sha256_digest(&context, uuid.bytes.size(), uuid.bytes.data());
  uuid.bytes[6] = static_cast<std::uint8_t>((uuid.bytes[6] & 0x0fU) | 0x80U);
  uuid.bytes[8] = static_cast<std::uint8_t>((uuid.bytes[8] & 0x3fU) | 0x80U);
  return vfpass::toString(uuid);
}

std::string addressSections(const std::optional<std::string>& address) {
  const bool version6 = address && isVersion6(*address);
  std::string text = "\n[ipv4]\n";
  text += address && !version6 ? "method=manual\naddress1=" + *address + "\nnever-default=true\n"
                               : "method=disabled\n";
  // The port's first GIDs come from link-local addresses.
  text += "\n[ipv6]\n";
  text += version6 ? "method=manual\naddress1=" + *address + "\nnever-default=true\n"
                   : "method=link-local\n";
  return text;
}

// NetworkManager compares only the last eight bytes of an InfiniBand address.
WantedFile connection(const PlacedPort& port, const Uuid& domain) {
  const std::string kind = port.wanted.infiniband ? "infiniband" : "ethernet";
  const GuestNetwork& network = port.wanted.network;
  std::ostringstream text;
  text << writtenBy << "[connection]\nid=vfpass-" << port.wanted.entry
       << "\nuuid=" << connectionUuid(domain, port.wanted.entry) << "\ntype=" << kind
       << "\nautoconnect-priority=100\n\n[" << kind << "]\nmac-address=" << port.netdev.address
       << '\n';
  if (network.mtu) {
    text << "mtu=" << *network.mtu << '\n';
  }
  if (port.wanted.infiniband) {
    text << "transport-mode=datagram\n";
  }
  text << addressSections(network.address);
  // NetworkManager ignores connection files that others can read or write.
  return {std::string(connectionFolder) + "/vfpass-" + port.wanted.entry + ".nmconnection",
          text.str(), 0600, persistence};
}

WantedFile networkdFile(const PlacedPort& port) {
  const GuestNetwork& network = port.wanted.network;
  std::ostringstream text;
  text << writtenBy << "[Match]\n";
  if (port.wanted.infiniband) {
    text << "Name=" << port.netdev.name << '\n';
  } else {
    // VLANs and bonds above it have the same address but another type.
    text << "MACAddress=" << port.wanted.address << "\nType=ether\n";
  }
  text << "\n[Link]\nRequiredForOnline=no\n";
  if (network.mtu) {
    text << "MTUBytes=" << *network.mtu << '\n';
  }
  text << "\n[Network]\nDHCP=no\nConfigureWithoutCarrier=yes\n";
  if (network.address) {
    text << "Address=" << *network.address << '\n';
  }
  return {std::string(networkdFolder) + "/10-vfpass-" + port.wanted.entry + ".network", text.str(),
          0644, persistence};
}

// Uses the interface's name. A pattern such as mac/ADDRESS matches nothing until the driver
// is loaded, so ifupdown-pre.service would not wait for the device at boot, and ifupdown's udev
// rule handles names only. allow-hotplug brings the interface up whenever it appears.
std::string interfacesStanza(const PlacedPort& port) {
  const GuestNetwork& network = port.wanted.network;
  const bool version6 = network.address && isVersion6(*network.address);
  std::ostringstream text;
  text << "\n# " << port.wanted.entry << "\nallow-hotplug " << port.name << "\niface " << port.name
       << (version6 ? " inet6 " : " inet ") << (network.address ? "static" : "manual") << '\n';
  if (network.address) {
    text << "    address " << *network.address << '\n';
  }
  if (version6) {
    // Duplicate address detection on a port without a link would delay the guest's boot.
    text << "    dad-attempts 0\n";
  }
  if (network.mtu) {
    text << "    mtu " << *network.mtu << '\n';
  }
  if (port.wanted.infiniband) {
    text << "    pre-up echo datagram >/sys/class/net/$IFACE/mode\n";
  }
  return text.str();
}

WantedFile interfaces(const std::vector<PlacedPort>& ports) {
  std::string text = writtenBy;
  for (const PlacedPort& port : ports) {
    text += interfacesStanza(port);
  }
  return {interfacesFile, text, 0644, persistence};
}

constexpr const char* bootScript = R"sh([ -n "$1" ] || set -- /etc/vfpass/guest-network.conf
failed=0
named() {
  for netdev in /sys/class/net/*; do
    [ -e "$netdev/device" ] && read -r hardware <"$netdev/address" || continue
    case $hardware in *"$1") echo "${netdev##*/}"; return ;; esac
  done
}
# The driver may still be loading, and udev cannot rename an interface that is up already.
found() {
  left=30
  until name=$(named "$1") && [ -n "$name" ] && [ "$name" = "${2:-$name}" ]; do
    left=$((left - 1))
    [ "$left" -gt 0 ] && sleep 1 || { [ -n "$name" ]; return; }
  done
}
while read -r address mtu network wanted; do
  case $address in '' | '#'*) continue ;; esac
  found "$address" "$wanted" || { echo "no interface has address $address" >&2; failed=1; continue; }
  [ "$mtu" = - ] || ip link set dev "$name" mtu "$mtu" || failed=1
  [ "$network" = - ] || ip address replace "$network" dev "$name" || failed=1
  ip link set dev "$name" up || failed=1
done <"$1"
exit "$failed"
)sh";

constexpr const char* bootUnit = R"sh([Unit]
Description=Addresses and MTU of virtual functions (vfpass guest-setup)
After=network-pre.target systemd-modules-load.service systemd-udev-trigger.service
Before=network.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /etc/vfpass/guest-network.sh

[Install]
WantedBy=multi-user.target
)sh";

std::vector<WantedFile> plain(const std::vector<PlacedPort>& ports) {
  std::string settings = std::string(writtenBy) + "# hardware address, MTU, address; - for none";
  const bool anyName = std::ranges::any_of(
      ports, [](const PlacedPort& port) { return port.wanted.network.name.has_value(); });
  settings += anyName ? "; name\n" : "\n";
  for (const PlacedPort& port : ports) {
    const GuestNetwork& network = port.wanted.network;
    settings += port.wanted.address + " " + (network.mtu ? std::to_string(*network.mtu) : "-") +
                " " + network.address.value_or("-") + (network.name ? " " + *network.name : "") +
                "\n";
  }
  return {{plainSettings, settings, 0644, persistence},
          {plainScript, std::string("#!/bin/sh\n") + writtenBy + bootScript, 0755,
           "applies guest-network.conf"},
          {plainUnit, std::string(writtenBy) + bootUnit, 0644, "runs guest-network.sh at boot"}};
}

}  // namespace

NetworkTool networkToolOf(const SetupView& view) {
  const bool networkd = view.running.contains("systemd-networkd");
  const bool networkManager = view.running.contains("NetworkManager");
  if ((networkd || networkManager) && view.tools.contains("netplan") && view.netplanFolder) {
    return NetworkTool::netplan;
  }
  if (networkManager) {
    return NetworkTool::networkManager;
  }
  if (networkd && view.tools.contains("networkctl")) {
    return NetworkTool::networkd;
  }
  return view.running.contains("networking") && view.tools.contains("ifup") && view.interfacesFolder
             ? NetworkTool::ifupdown
             : NetworkTool::plain;
}

std::string toString(NetworkTool tool) {
  switch (tool) {
    case NetworkTool::netplan:
      return "netplan";
    case NetworkTool::networkManager:
      return "NetworkManager";
    case NetworkTool::networkd:
      return "systemd-networkd";
    case NetworkTool::ifupdown:
      return "ifupdown";
    case NetworkTool::plain:
      break;
  }
  return "ip";
}

// udev applies the first matching .link file only, so this one hides 99-default.link, whose
// alternative names it repeats. VLANs and bonds above the interface have its address too, but no
// path; `Type=ether` would not do, because udev up to systemd 241 compares it with DEVTYPE, which
// Ethernet lacks. Without NamePolicy=, Name= also replaces a name that the initramfs gave.
WantedFile linkFile(const PlacedPort& port) {
  return {std::string(networkdFolder) + "/10-vfpass-" + port.wanted.entry + ".link",
          std::string(writtenBy) + "[Match]\nMACAddress=" + port.wanted.address +
              "\nPath=*pci-*\n\n[Link]\nName=" + port.name +
              "\nAlternativeNamesPolicy=database onboard slot path\n",
          0644, "the interface's name, from the guest's next start"};
}

std::vector<WantedFile> networkFiles(NetworkTool tool, const std::vector<PlacedPort>& ports,
                                     const SetupView& view, const Uuid& domain) {
  std::vector<WantedFile> files;
  if (ports.empty()) {
    return files;
  }
  switch (tool) {
    case NetworkTool::netplan:
      return {netplan(ports, view)};
    case NetworkTool::networkManager:
      for (const PlacedPort& port : ports) {
        files.push_back(connection(port, domain));
      }
      return files;
    case NetworkTool::networkd:
      for (const PlacedPort& port : ports) {
        files.push_back(networkdFile(port));
      }
      return files;
    case NetworkTool::ifupdown:
      return {interfaces(ports)};
    case NetworkTool::plain:
      break;
  }
  return view.running.contains("systemd") ? plain(ports) : files;
}

namespace {

// NCCL accepts comments only with `#` in the first column. The markers identify the block in files
// that earlier runs wrote, so their text must not change.
constexpr std::string_view blockBegin =
    "# vfpass guest-setup: begin; the first line of a key counts, so these do\n";
constexpr std::string_view blockEnd = "# vfpass guest-setup: end\n";

std::string withoutBlock(const std::string& content) {
  const auto begin = content.find(blockBegin);
  const auto end = begin == std::string::npos ? begin : content.find(blockEnd, begin);
  if (end == std::string::npos || (begin != 0 && content[begin - 1] != '\n')) {
    return content;
  }
  return content.substr(0, begin) + content.substr(end + blockEnd.size());
}

std::string keyOf(const std::string& line) { return line.substr(0, line.find('=')); }

}  // namespace

std::vector<std::string> ncclLines(const NcclSettings& settings, const std::string& topologyFile) {
  std::vector<std::string> lines;
  const auto add = [&](const char* key, const std::optional<unsigned>& value) {
    if (value) {
      lines.push_back(std::string(key) + "=" + std::to_string(*value));
    }
  };
  add("NCCL_IB_GID_INDEX", settings.gidIndex);
  add("NCCL_IB_TC", settings.trafficClass);
  add("NCCL_IB_SL", settings.serviceLevel);
  add("NCCL_IB_QPS_PER_CONNECTION", settings.queuePairs);
  add("NCCL_IB_TIMEOUT", settings.timeout);
  for (const auto& [name, value] : settings.environment) {
    lines.push_back(name + "=" + value);
  }
  if (!topologyFile.empty()) {
    lines.push_back("NCCL_TOPO_FILE=" + topologyFile);
  }
  return lines;
}

std::string withNcclBlock(const std::string& content, const std::vector<std::string>& lines) {
  const std::string rest = withoutBlock(content);
  return lines.empty()
             ? rest
             : std::string(blockBegin) + join(lines, "\n") + "\n" + std::string(blockEnd) + rest;
}

std::vector<std::string> overriddenLines(const std::string& content,
                                         const std::vector<std::string>& lines) {
  std::vector<std::string> overridden;
  for (const std::string& line : splitLines(withoutBlock(content))) {
    const bool setting = !line.starts_with('#') && line.find('=') != std::string::npos;
    if (setting && std::ranges::any_of(lines, [&](const std::string& ours) {
          return keyOf(ours) == keyOf(line) && ours != line;
        })) {
      overridden.push_back(line);
    }
  }
  return overridden;
}

}  // namespace vfpass::setup
