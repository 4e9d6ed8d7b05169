#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>

#include "competing_managers.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

/// What one file says about one device.
struct NetplanPart {
  std::string file;
  std::string id;
  YAML::Node node;
};

YAML::Node memberOf(const YAML::Node& node, const char* key) {
  const YAML::Node found = node.IsMap() ? node[key] : YAML::Node();
  return found ? found : YAML::Node();
}

std::string scalarOf(const YAML::Node& node, const char* key) {
  const YAML::Node found = memberOf(node, key);
  return found.IsScalar() ? found.Scalar() : "";
}

std::vector<std::string> scalarsOf(const YAML::Node& node, const char* key) {
  const YAML::Node found = memberOf(node, key);
  std::vector<std::string> values;
  if (found.IsScalar()) {
    values.push_back(found.Scalar());
  }
  for (std::size_t i = 0; found.IsSequence() && i < found.size(); ++i) {
    values.push_back(found[i].IsScalar() ? found[i].Scalar() : "");
  }
  return values;
}

// netplan reads the files of all directories by name; doctor's check names invalid ones.
std::vector<NetplanPart> partsIn(const View& view, const std::vector<std::string>& files,
                                 const char* kind) {
  std::vector<NetplanPart> parts;
  for (const std::string& file : files) {
    try {
      const YAML::Node devices =
          memberOf(memberOf(YAML::Load(wholeText(view, file)), "network"), kind);
      for (auto each = devices.begin(); devices.IsMap() && each != devices.end(); ++each) {
        if (each->first.IsScalar() && each->second.IsMap()) {
          parts.push_back({"/" + file, each->first.Scalar(), each->second});
        }
      }
    } catch (const YAML::Exception&) {
      continue;
    }
  }
  return parts;
}

// Without `match:`, the ID is the name (netplan-yaml(5)).
std::map<std::string, DeviceMatch> matchesOf(const std::vector<NetplanPart>& parts) {
  std::map<std::string, DeviceMatch> matches;
  for (const NetplanPart& part : parts) {
    DeviceMatch& match = matches[part.id];
    const YAML::Node conditions = memberOf(part.node, "match");
    for (const std::string& name : scalarsOf(conditions, "name")) {
      match.names.push_back(name);
    }
    for (const std::string& mac : scalarsOf(conditions, "macaddress")) {
      match.macs.push_back(toLower(mac));
    }
    for (const std::string& driver : scalarsOf(conditions, "driver")) {
      match.drivers.push_back(driver);
    }
  }
  for (auto& [id, match] : matches) {
    if (match.empty()) {
      match.names = {id};
    }
  }
  return matches;
}

class NetplanReader {
 public:
  explicit NetplanReader(const View& view) : view_(view) {
    auto files = filesIn(view, {"etc/netplan", "run/netplan", "usr/lib/netplan"});
    std::erase_if(files, [](const std::string& file) { return !file.ends_with(".yaml"); });
    parts_ = partsIn(view, files, "ethernets");
    vlans_ = partsIn(view, files, "vlans");
    matches_ = matchesOf(parts_);
  }

  std::vector<BootPolicy> policies() {
    for (const NetplanPart& part : parts_) {
      addPf(part);
      if (!scalarOf(part.node, "link").empty()) {
        addVf(part);
      }
    }
    for (const NetplanPart& part : vlans_) {
      if (scalarOf(part.node, "renderer") == "sriov") {
        addVlan(part);
      }
    }
    return std::move(policies_);
  }

 private:
  static BootPolicy policyFor(const NetplanPart& part) {
    BootPolicy policy;
    policy.file = part.file;
    policy.manager = "netplan";
    policy.text = part.id + ":";
    return policy;
  }

  [[nodiscard]] std::vector<std::size_t> pfsOf(const std::string& id) const {
    const auto match = matches_.find(id);
    return match == matches_.end() ? std::vector<std::size_t>() : matchingPfs(view_, match->second);
  }

  void addPf(const NetplanPart& part) {
    BootPolicy policy = policyFor(part);
    for (const char* key : {"virtual-function-count", "embedded-switch-mode",
                            "delay-virtual-functions-rebind", "mtu"}) {
      if (const std::string value = scalarOf(part.node, key); !value.empty()) {
        policy.text += std::string(" ") + key + ": " + value;
      }
    }
    policy.vfCount = countOf(scalarOf(part.node, "virtual-function-count"));
    policy.mtu = countOf(scalarOf(part.node, "mtu"));
    const std::string mode = scalarOf(part.node, "embedded-switch-mode");
    policy.eswitchMode = mode.empty() ? std::nullopt : std::optional(mode);
    const auto pfs = pfsOf(part.id);
    const bool ofVfs = policy.vfCount || policy.eswitchMode;
    if (ofVfs || (policy.mtu && !pfs.empty())) {
      addForEach(view_, pfs, policy, policies_);
    }
  }

  // The definition selects the VF by its netdev, which a VF that a guest has lacks.
  [[nodiscard]] std::optional<unsigned> vfOf(const std::string& id) const {
    const auto match = matches_.find(id);
    for (const Device& function : view_.topology().functions) {
      const bool named =
          match != matches_.end() &&
          std::ranges::find(match->second.names, function.netdev()) != match->second.names.end();
      if (function.vfIndex && !function.netdev().empty() && named) {
        return function.vfIndex;
      }
    }
    return std::nullopt;
  }

  void addVf(const NetplanPart& part) {
    BootPolicy policy = policyFor(part);
    const std::string link = scalarOf(part.node, "link");
    const std::string mac = scalarOf(part.node, "macaddress");
    policy.text += " link: " + link + (mac.empty() ? "" : " macaddress: " + mac);
    policy.vf = vfOf(part.id);
    policy.settings.mac = parseMacAddress(mac);
    addForEach(view_, pfsOf(link), policy, policies_);
  }

  // `renderer: sriov`: the PF tags the VF's frames.
  void addVlan(const NetplanPart& part) {
    BootPolicy policy = policyFor(part);
    const std::string vf = scalarOf(part.node, "link");
    const std::string id = scalarOf(part.node, "id");
    policy.text += " link: " + vf + " id: " + id + " renderer: sriov";
    policy.vf = vfOf(vf);
    if (const auto vlan = vlanIdOf(id)) {
      policy.settings.vlan = Vlan{*vlan, 0, VlanProtocol::dot1q};
    }
    for (const NetplanPart& each : parts_) {
      if (each.id == vf && !scalarOf(each.node, "link").empty()) {
        addForEach(view_, pfsOf(scalarOf(each.node, "link")), policy, policies_);
        return;
      }
    }
    policies_.push_back(policy);
  }

  const View& view_;
  std::vector<NetplanPart> parts_;
  std::vector<NetplanPart> vlans_;
  std::map<std::string, DeviceMatch> matches_;
  std::vector<BootPolicy> policies_;
};

}  // namespace

std::vector<BootPolicy> netplanPolicies(const View& view) { return NetplanReader(view).policies(); }

}  // namespace vfpass::doctor
