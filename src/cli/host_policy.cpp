#include "host_policy.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::cli {
namespace {

constexpr std::size_t namedHolders = 4;

void addNetdevs(const VirtualFunction& vf, std::vector<std::string>& holders) {
  for (const auto& netdev : vf.netdevs) {
    if (netdev.up || netdev.enslaved) {
      holders.push_back("VF " + std::to_string(vf.index) + "'s netdev " + printable(netdev.name) +
                        (netdev.enslaved ? " is in a bond or bridge" : " is up"));
    }
  }
}

void addVfio(const VirtualFunction& vf, std::vector<std::string>& holders) {
  const std::string name = "VF " + std::to_string(vf.index) + " (" + toString(vf.address) + ")";
  if (vf.vfioInUse) {
    holders.push_back(name + " is held open through VFIO");
  } else if (vf.driver.ends_with("vfio-pci") || vf.driver.ends_with("vfio_pci")) {
    holders.push_back(name + " is on " + vf.driver);
  }
}

std::string nameOf(const PhysicalFunction& pf) {
  return "PF " + toString(pf.address) + (pf.netdev.empty() ? "" : " (" + pf.netdev + ")");
}

}  // namespace

std::vector<std::string> vfHolders(const PhysicalFunction& pf, const std::vector<Lease>& leases) {
  std::vector<std::string> holders;
  for (const auto& lease : leases) {
    if (lease.pf == pf.address) {
      holders.push_back("VF " + std::to_string(lease.vfIndex) + " is leased to " +
                        printable(lease.domainName));
    }
  }
  for (const auto& vf : pf.vfs) {
    addVfio(vf, holders);
    addNetdevs(vf, holders);
  }
  return holders;
}

std::string nameHolders(const std::vector<std::string>& holders) {
  if (holders.size() <= namedHolders) {
    return join(holders, ", ");
  }
  const std::vector<std::string> first(holders.begin(), holders.begin() + namedHolders);
  return join(first, ", ") + ", and " + std::to_string(holders.size() - namedHolders) + " more";
}

void requireFittingPolicy(const PhysicalFunction& pf, const PfPolicy& policy) {
  const std::string place = toString(policy.place) + ": ";
  if (policy.serial && *policy.serial != pf.serial) {
    throw Error(place + nameOf(pf) + " has " +
                    (pf.serial.empty() ? "no serial number that can be read"
                                       : "serial number " + printable(pf.serial)) +
                    ", host.yaml says " + printable(*policy.serial),
                "the card was moved or replaced: check it, then correct host.yaml",
                ExitCode::refused);
  }
  if (policy.vfCount && *policy.vfCount > pf.totalVfs) {
    throw Error(place + std::to_string(*policy.vfCount) + " VFs are wanted, but " + nameOf(pf) +
                    " can have " + std::to_string(pf.totalVfs),
                "lower virtual-function-count, or raise NUM_OF_VFS in the card's firmware "
                "(mlxconfig) and power-cycle",
                ExitCode::badInput);
  }
  if ((policy.mtu || policy.up) && pf.netdev.empty()) {
    throw Error(place + nameOf(pf) + " has no netdev to set `mtu` or `up` on",
                "load the driver that makes it, or take both out of host.yaml");
  }
}

void requireRoomForLeases(const PhysicalFunction& pf, unsigned count,
                          const std::vector<Lease>& leases) {
  const auto stranded = std::find_if(leases.begin(), leases.end(), [&](const Lease& lease) {
    return lease.pf == pf.address && lease.vfIndex >= count;
  });
  if (stranded != leases.end()) {
    throw Error("with " + std::to_string(count) + " VFs on " + nameOf(pf) + ", " +
                    printable(stranded->domainName) + " would lose VF " +
                    std::to_string(stranded->vfIndex) + ", which is leased to it",
                "raise virtual-function-count, or run `vfpass detach` on that VM first",
                ExitCode::refused);
  }
}

void requireNoOpenOperation(const PhysicalFunction& pf,
                            const std::vector<state::Operation>& operations) {
  for (const auto& operation : operations) {
    Plan plan;
    for (const auto& journaled : operation.steps) {
      plan.steps.push_back(journaled.step);
    }
    const auto pfs = lockedPfs(plan);
    if (std::find(pfs.begin(), pfs.end(), pf.address) != pfs.end()) {
      throw Error(nameOf(pf) + " is in the middle of `" + std::string(toString(operation.kind)) +
                      "` for " + printable(operation.domainName) + ", which was not finished",
                  "wait for it, or run `vfpass recover`, then `vfpass host apply` again",
                  ExitCode::refused);
    }
  }
}

}  // namespace vfpass::cli
