// What other programs' files set on PFs and VFs at boot, as `import` and doctor read them. A line
// `== PATH` begins a file.
// covers: src/doctor/boot_policies.cpp src/doctor/netplan_policies.cpp
// src/doctor/network_manager_policies.cpp src/doctor/systemd_policies.cpp
// src/doctor/boot_commands.cpp src/doctor/vf_count_writers.cpp
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "fake/temporary_folder.hpp"
#include "fuzz/target.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view fileMark = "== ";
constexpr std::size_t mostFiles = 16;
constexpr const char* secret = "Pr1vate";

// Below the folder, and of few components: what the names of files do is not the subject here.
bool isUsable(std::string_view path) {
  const auto isPlain = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.' ||
           letter == '/';
  };
  return path.size() < 200 &&
         (path.starts_with("etc/") || path.starts_with("run/") || path.starts_with("usr/lib/")) &&
         path.find("..") == std::string_view::npos && std::ranges::all_of(path, isPlain);
}

void writeTree(const fs::path& folder, std::string_view input) {
  std::string path;
  std::string content;
  std::size_t count = 0;
  const auto finish = [&] {
    std::error_code failed;
    if (isUsable(path) && count++ < mostFiles &&
        (fs::create_directories((folder / path).parent_path(), failed) || !failed)) {
      const bool isProfile = path.find("system-connections/") != std::string::npos;
      writeFile(folder / path,
                content + (isProfile ? "\n\n[wifi-security]\npsk=" + std::string(secret) : ""));
    }
    content.clear();
  };
  for (const std::string& line : splitLines(input)) {
    if (line.starts_with(fileMark)) {
      finish();
      path = line.substr(fileMark.size());
    } else {
      content += line + "\n";
    }
  }
  finish();
}

// A PF with the netdev net-mlx5_0 and two VFs, of which the first has the netdev vf0.
Topology topologyOfPf() {
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  const auto pf = builder.pf("0000:03:00.0", "mlx5_0", bridge);
  for (unsigned index = 0; index < 2; ++index) {
    const auto vf =
        builder.function(FunctionRole::nic, "0000:03:00." + std::to_string(index + 1), bridge);
    builder.topology.functions[vf].physicalFunction = builder.topology.functions[pf].address;
    builder.topology.functions[vf].vfIndex = index;
  }
  builder.topology.functions[pf].vfCount = 2;
  builder.topology.functions[pf + 1].netdevs.push_back({"vf0", 9, false, false});
  return builder.topology;
}

// Their order, by which a reader of the list sees what counts first.
std::size_t rankOf(const BootPolicy& policy) {
  constexpr std::array managers{"netplan", "NetworkManager", "systemd", "script"};
  const auto* const found = std::ranges::find(managers, policy.manager);
  require(found != managers.end(), "a policy names its program");
  return static_cast<std::size_t>(found - managers.begin());
}

void checkPolicy(const BootPolicy& policy, const Topology& topology) {
  require(policy.file.starts_with('/'), "a file is an absolute path");
  require(!policy.pf || *policy.pf == topology.functions.front().address,
          "a PF is one of the host");
  require(
      !policy.settings.vlan || (policy.settings.vlan->id <= 4094 && policy.settings.vlan->qos <= 7),
      "a VLAN that is read is one");
  for (const std::string& text : {policy.text, policy.remedy}) {
    require(text.find(secret) == std::string::npos, "no key of a WLAN leaves its profile");
  }
}

}  // namespace

void runTarget(std::string_view input) {
  const fake::TemporaryFolder folder(fastFolder());
  writeTree(folder.path(), input);
  static const Topology topology = topologyOfPf();
  const auto policies =
      accepted([&] { return doctor::bootPolicies(host::Root(folder.path()), topology); });
  require(policies.has_value(), "no file keeps the others from being read");
  for (const BootPolicy& policy : *policies) {
    checkPolicy(policy, topology);
  }
  require(std::ranges::is_sorted(*policies, {}, rankOf), "policies come by program");
}

}  // namespace vfpass::fuzz
