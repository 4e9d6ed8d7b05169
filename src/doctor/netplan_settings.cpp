#include "netplan_settings.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>

namespace vfpass::doctor {
namespace {

constexpr std::array settingNames{"virtual-function-count", "embedded-switch-mode",
                                  "delay-virtual-functions-rebind"};
constexpr const char* unreadable = "unreadable: virtual-function-count";

YAML::Node child(const YAML::Node& node, const char* key) {
  const YAML::Node found = node.IsMap() ? node[key] : YAML::Node();
  return found ? found : YAML::Node();
}

// `link` of anything but a device below `ethernets:` has another meaning (a VLAN's device).
NetplanDevice deviceOf(const std::string& id, const YAML::Node& node, bool withLink) {
  NetplanDevice device{id, {}};
  const auto add = [&](const char* name) {
    if (const YAML::Node value = child(node, name); value.IsScalar()) {
      device.settings.emplace_back(name, value.Scalar());
    }
  };
  std::ranges::for_each(settingNames, add);
  if (withLink) {
    add("link");
  }
  return device;
}

std::vector<NetplanDevice> devicesIn(const YAML::Node& root) {
  std::vector<NetplanDevice> devices;
  const auto add = [&](NetplanDevice device) {
    if (!device.settings.empty()) {
      devices.push_back(std::move(device));
    }
  };
  add(deviceOf("", root, false));
  const YAML::Node ethernets = child(child(root, "network"), "ethernets");
  if (ethernets.IsMap()) {
    for (const auto& each : ethernets) {
      add(deviceOf(each.first.IsScalar() ? each.first.Scalar() : "", each.second, true));
    }
  }
  return devices;
}

bool namesSetting(const std::string& text) {
  return std::ranges::any_of(
      settingNames, [&](const char* name) { return text.find(name) != std::string::npos; });
}

}  // namespace

std::optional<std::vector<NetplanDevice>> readNetplan(const std::string& text) {
  if (text.find(unreadable) == 0) {
    return std::nullopt;
  }
  try {
    return devicesIn(YAML::Load(text));
  } catch (const YAML::Exception&) {
    return namesSetting(text) ? std::nullopt
                              : std::optional<std::vector<NetplanDevice>>(std::in_place);
  }
}

std::string reducedNetplan(const std::string& text) {
  const auto devices = readNetplan(text);
  if (!devices) {
    return std::string(unreadable) + "\n";
  }
  YAML::Node root;
  for (const NetplanDevice& device : *devices) {
    for (const auto& [name, value] : device.settings) {
      (device.id.empty() ? root : root["network"]["ethernets"][device.id])[name] = value;
    }
  }
  return devices->empty() ? "" : YAML::Dump(root) + "\n";
}

}  // namespace vfpass::doctor
