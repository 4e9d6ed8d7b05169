#include "host_users.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

constexpr std::size_t namedUsers = 4;

std::string nameOf(const VirtualFunction& vf) {
  return "VF " + std::to_string(vf.index) + " (" + toString(vf.address) + ")";
}

void addNetdevs(const VirtualFunction& vf, std::vector<std::string>& users) {
  for (const auto& netdev : vf.netdevs) {
    if (netdev.up || netdev.enslaved) {
      users.push_back("VF " + std::to_string(vf.index) + "'s netdev " + printable(netdev.name) +
                      (netdev.enslaved ? " is in a bond or bridge" : " is up"));
    }
  }
}

void addVfio(const VirtualFunction& vf, std::vector<std::string>& users) {
  if (vf.vfioInUse) {
    users.push_back(nameOf(vf) + " is held open through VFIO");
  } else if (vf.driver.ends_with("vfio-pci") || vf.driver.ends_with("vfio_pci")) {
    users.push_back(nameOf(vf) + " is bound to " + vf.driver);
  }
}

void addVf(const HostInput& input, const VirtualFunction& vf, std::vector<std::string>& users) {
  bool held = false;
  for (const auto& holder : input.holders) {
    if (holder.device == vf.address) {
      users.push_back(nameOf(vf) + ": " + holder.description);
      held = true;
    }
  }
  if (!held) {
    addVfio(vf, users);
    addNetdevs(vf, users);
  }
}

}  // namespace

std::vector<std::string> vfUsers(const HostInput& input) {
  std::vector<std::string> users;
  for (const auto& lease : input.leases) {
    if (lease.pf == input.pf.address) {
      users.push_back(
          (isVf(lease) ? "VF " + std::to_string(vfOf(lease).index) : describeDevice(lease)) +
          " is leased to domain " + printable(lease.domainName));
    }
  }
  for (const auto& vf : input.pf.vfs) {
    addVf(input, vf, users);
  }
  return users;
}

std::string nameUsers(const std::vector<std::string>& users) {
  if (users.size() <= namedUsers) {
    return join(users, ", ");
  }
  const std::vector<std::string> first(users.begin(), users.begin() + namedUsers);
  return join(first, ", ") + ", and " + std::to_string(users.size() - namedUsers) + " more";
}

}  // namespace vfpass::plan
