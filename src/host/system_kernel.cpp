#include "vfpass/host/system_kernel.hpp"

#include <algorithm>

#include "bind_driver.hpp"
#include "configure_vfs.hpp"
#include "kernel_write.hpp"
#include "load_module.hpp"
#include "ofed_files.hpp"
#include "pci_function.hpp"
#include "read_function.hpp"
#include "read_pf.hpp"
#include "reset_function.hpp"
#include "vf_count.hpp"
#include "vf_port.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

struct SystemKernel::Implementation {
  Implementation(Root readFrom, const Deadlines& limits)
      : root(std::move(readFrom)), writer(root), deadlines(limits) {}

  void requireLive(const PciAddress& function) const {
    if (!root.isLive()) {
      throw Error(toString(function) + ": read-only: captured tree",
                  "Leave out --sysroot to change this host.");
    }
  }

  Root root;
  GuardedWriter writer;
  Deadlines deadlines;
};

namespace {

// The PF's netdev, by which its VFs are set.
Netdev requireNetdev(const Root& root, const PciAddress& pf) {
  const auto netdevs = readNetdevs(root, pf);
  if (netdevs.empty()) {
    throw Error(toString(pf) + ": it has no netdev, so its VFs' attributes cannot be set",
                "Bind the PF to its driver (mlx5_core), in the host's network namespace.");
  }
  return netdevs.front();
}

void requireVfs(const Root& root, const ConfigureVfs& action, const std::string& name) {
  const auto present = readVfLinks(root, action.pf);
  for (const VfChange& change : action.vfs) {
    if (std::none_of(present.begin(), present.end(),
                     [&](const VfLink& link) { return link.index == change.index; })) {
      throw Error(name + ": it has no VF " + std::to_string(change.index) + "; its VFs are " +
                      std::to_string(present.size()) + ", counted from 0",
                  "Create more VFs, or choose another index.");
    }
  }
}

}  // namespace

SystemKernel::SystemKernel(const std::filesystem::path& root, Deadlines deadlines)
    : SystemKernel(Root(root), deadlines) {}

SystemKernel::SystemKernel(Root root, Deadlines deadlines)
    : implementation_(std::make_unique<Implementation>(std::move(root), deadlines)) {}

SystemKernel::~SystemKernel() = default;

PhysicalFunction SystemKernel::readPf(const PciAddress& pf) {
  auto found = readPhysicalFunction(implementation_->root, pf, implementation_->deadlines.netlink);
  if (!found) {
    throw Error(toString(pf) + ": there is no such PCI device",
                "`vfpass pf list` shows the PFs of this host.");
  }
  return *found;
}

std::vector<PhysicalFunction> SystemKernel::readPfs() {
  std::vector<PhysicalFunction> pfs;
  for (const PciAddress& address : findPhysicalFunctions(implementation_->root)) {
    if (auto pf = readPhysicalFunction(implementation_->root, address,
                                       implementation_->deadlines.netlink)) {
      pfs.push_back(std::move(*pf));
    }
  }
  return pfs;
}

std::optional<PciFunction> SystemKernel::readFunction(const PciAddress& function) {
  return readPciFunction(implementation_->root, function);
}

void SystemKernel::createVfs(const CreateVfs& action) {
  implementation_->requireLive(action.pf);
  host::createVfs(implementation_->root, implementation_->writer, action,
                  implementation_->deadlines.createVfs);
}

void SystemKernel::removeVfs(const RemoveVfs& action) {
  implementation_->requireLive(action.pf);
  // Only the inverse of a creation can meet one that is still under way.
  const RemoveScope scope = action.autoprobe ? RemoveScope::inFlight : RemoveScope::present;
  host::removeVfs(implementation_->root, implementation_->writer, readPf(action.pf), scope,
                  implementation_->deadlines.createVfs);
  if (action.autoprobe) {
    host::setAutoprobe(implementation_->writer, action.pf, *action.autoprobe);
  }
}

std::vector<RefusedAttribute> SystemKernel::configureVfs(const ConfigureVfs& action) {
  implementation_->requireLive(action.pf);
  const Root& root = implementation_->root;
  const Netdev netdev = requireNetdev(root, action.pf);
  const std::string name = netdev.name + " (" + toString(action.pf) + ")";
  requireVfs(root, action, name);
  const auto deadline = implementation_->deadlines.netlink;
  const bool infiniband = readLinkLayer(root, action.pf) == LinkLayer::infiniband;
  NetlinkPort netlink(netdev.index, infiniband, name, deadline);
  OfedPort ofed(netlink, root, implementation_->writer, action.pf, deadline);
  VfPort& port = infiniband ? static_cast<VfPort&>(ofed) : netlink;
  return host::configureVfs(port, action.vfs, {name, readDriver(root, action.pf)}, deadline);
}

std::optional<VfTraffic> SystemKernel::vfTraffic(const PciAddress& pf, unsigned index) {
  implementation_->requireLive(pf);
  const Netdev netdev = requireNetdev(implementation_->root, pf);
  NetlinkPort port(netdev.index, false, netdev.name + " (" + toString(pf) + ")",
                   implementation_->deadlines.netlink);
  const auto table = port.readTraffic();
  const auto found = table.find(index);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

void SystemKernel::bindDriver(const BindDriver& action) {
  implementation_->requireLive(action.function);
  const auto deadline = implementation_->deadlines.bind;
  host::bindDriver(
      implementation_->root, implementation_->writer,
      [deadline](const std::string& module) { loadModule(module, deadline); }, action, deadline);
}

void SystemKernel::resetFunction(const ResetFunction& action) {
  implementation_->requireLive(action.function);
  host::resetFunction(implementation_->root, implementation_->writer, action.function,
                      implementation_->deadlines.bind);
}

std::string SystemKernel::bootId() {
  const auto id = implementation_->root.readText("proc/sys/kernel/random/boot_id", 64);
  if (!id || id->empty()) {
    throw Error("cannot read /proc/sys/kernel/random/boot_id", "Is /proc mounted?");
  }
  return *id;
}

bool SystemKernel::unsafeInterrupts() {
  return implementation_->root.readText(
             "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts") == "Y";
}

bool SystemKernel::iommuPresent() {
  return !implementation_->root.list("sys/kernel/iommu_groups").empty();
}

}  // namespace vfpass::host
