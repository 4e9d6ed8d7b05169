#include "netplan_file.hpp"

#include <yaml-cpp/yaml.h>

#include "setup_paths.hpp"

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

}  // namespace

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

}  // namespace vfpass::setup
