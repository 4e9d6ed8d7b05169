#include "vfpass/host/system_kernel.hpp"

#include <algorithm>
#include <deque>

#include "drivers/driver_binding.hpp"
#include "drivers/memory_canary.hpp"
#include "holders/holder_kinds.hpp"
#include "netlink/devlink.hpp"
#include "netlink/netlink_exchange.hpp"
#include "sriov/pf_and_vfs.hpp"
#include "sriov/vf_port.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/device_identity.hpp"
#include "vfpass/host/driver_modules.hpp"
#include "vfpass/host/error_counters.hpp"
#include "vfpass/host/fabric_manager.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/function_reset.hpp"
#include "vfpass/host/link_settings.hpp"
#include "vfpass/host/pci_function.hpp"
#include "vfpass/host/soft_roce_links.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::host {

namespace {

[[noreturn]] void throwFault(const PciAddress& pf, const std::string& failed,
                             const PortFault& fault) {
  throw Error("PF " + toString(pf) + ": " + failed + ": it " + fault.what, fault.remedy);
}

}  // namespace

struct SystemKernel::Implementation {
  Implementation(Root readFrom, const Deadlines& limits)
      : root(std::move(readFrom)), writer(root), deadlines(limits) {
    for (std::size_t worker = 1; worker < bindingWorkers; ++worker) {
      otherWriters.emplace_back(root);
    }
  }

  void requireLive(const PciAddress& function) const { requireLive(toString(function)); }

  void requireLive(const std::string& object) const {
    if (!root.isLive()) {
      throw Error(object + ": read-only: captured tree", "omit --sysroot to change this host");
    }
  }

  // For what mlx5 does without a look at its netdev.
  void requireAttached(const PciAddress& pf, const std::string& failed) const {
    for (const Netdev& netdev : readNetdevs(root, pf)) {
      if (isNetdevDetached({netdev.index, netdev.name}, netlink())) {
        throwFault(pf, failed, detachedNetdev());
      }
    }
  }

  // At least one millisecond, so that a call that need not wait still succeeds.
  [[nodiscard]] std::chrono::milliseconds within(std::chrono::milliseconds limit) const {
    using std::chrono::milliseconds;
    if (!deadlines.end) {
      return limit;
    }
    const auto left =
        std::chrono::duration_cast<milliseconds>(*deadlines.end - std::chrono::steady_clock::now());
    return std::clamp(left, milliseconds{1}, std::max(limit, milliseconds{1}));
  }
  [[nodiscard]] bool hasTime(std::chrono::milliseconds limit) const {
    return !deadlines.end || *deadlines.end - std::chrono::steady_clock::now() >= limit;
  }
  [[nodiscard]] std::chrono::milliseconds bind() const { return within(deadlines.bind); }
  [[nodiscard]] std::chrono::milliseconds createVfs() const { return within(deadlines.createVfs); }
  [[nodiscard]] std::chrono::milliseconds removeVfs() const { return within(deadlines.removeVfs); }
  [[nodiscard]] std::chrono::milliseconds netlink() const { return within(deadlines.netlink); }
  [[nodiscard]] std::chrono::milliseconds eswitch() const { return within(deadlines.eswitch); }
  [[nodiscard]] std::chrono::milliseconds rdma() const { return within(deadlines.rdma); }

  // `with` is of one thread.
  void bind(const BindDriver& action, KernelWriter& with) const {
    const auto deadline = bind();
    host::bindDriver(
        root, with, [deadline](const std::string& module) { loadModule(module, deadline); },
        {[this](const PciAddress& vf) { return isMigratable(vf); },
         [this](const PciAddress& vf, bool migratable) { setMigratable(vf, migratable); }},
        action, deadline);
  }

  // A whole function has no PF and no such capability.
  void setMigratable(const PciAddress& vf, bool migratable) const {
    withVf(vf, [&](const PciAddress& pf, unsigned index) {
      host::setMigratable(pf, index, migratable, netlink());
    });
  }

  [[nodiscard]] std::optional<bool> isMigratable(const PciAddress& vf) const {
    std::optional<bool> found;
    withVf(vf, [&](const PciAddress& pf, unsigned index) {
      const auto vfs = readMigratable(pf, netlink());
      const auto at = vfs.find(index);
      found = at == vfs.end() ? std::nullopt : at->second;
    });
    return found;
  }

  template <typename Use>
  void withVf(const PciAddress& vf, Use use) const {
    const auto pf = readPfOf(root, vf);
    for (const VfLink& link : pf ? readVfLinks(root, *pf) : std::vector<VfLink>()) {
      if (link.address == vf) {
        use(*pf, link.index);
      }
    }
  }

  [[nodiscard]] PhysicalFunction readPf(const PciAddress& pf, const std::vector<PciAddress>* wanted,
                                        Serials serials = Serials::read) const {
    auto found = readPhysicalFunctions(root, {pf}, netlink(), wanted, PfDetails::all, serials);
    if (found.empty()) {
      throw Error(toString(pf) + ": no such PCI device",
                  "list the PFs of this host with `vfpass pf list`");
    }
    return std::move(found.front());
  }

  std::vector<RefusedAttribute> configureVfs(const ConfigureVfs& action, Sent sent);

  // A writer's helper process serves all bindings of its worker.
  GuardedWriter& writerOf(std::size_t worker) {
    return worker == 0 ? writer : otherWriters[worker - 1];
  }

  Root root;
  GuardedWriter writer;
  std::deque<GuardedWriter> otherWriters;
  Deadlines deadlines;
};

namespace {

std::optional<PortFault> portFault(const Root& root, const PciAddress& pf) {
  const auto found = readPfIdentity(root, pf, Serials::skip);
  return found ? faultOfPort(*found) : std::nullopt;
}

void throwPortFault(const Root& root, const PciAddress& pf, const std::string& failed) {
  if (const auto fault = portFault(root, pf)) {
    throwFault(pf, failed, *fault);
  }
}

// The PF's netdev, through which its VFs are configured; nullopt on an InfiniBand PF that has files
// for them instead.
std::optional<Netdev> netdevOrFiles(const Root& root, const PciAddress& pf) {
  const auto netdevs = readNetdevs(root, pf);
  if (!netdevs.empty()) {
    return netdevs.front();
  }
  throwPortFault(root, pf, "cannot access VF attributes");
  return std::nullopt;
}

std::string deniedRemedyFor(const Root& root, const PciAddress& pf) {
  const Device device = readDevice(root, pf, {.driver = false, .ids = true});
  return deniedRemedy(device.vendor, device.device);
}

std::vector<PciAddress> addressesOf(const PhysicalFunction& pf) {
  std::vector<PciAddress> vfs;
  for (const VirtualFunction& vf : pf.vfs) {
    vfs.push_back(vf.address);
  }
  return vfs;
}

// Looked up for each change: the name can change.
NetdevHandle linkOf(const Root& root, const PciAddress& pf) {
  const auto netdevs = readNetdevs(root, pf);
  if (netdevs.empty()) {
    throwPortFault(root, pf, "cannot change its link");
    throw Error("PF " + toString(pf) + ": no netdev", "remove `mtu` and `up` from host.yaml");
  }
  return {netdevs.front().index, netdevs.front().name};
}

void requireVfs(const Root& root, const ConfigureVfs& action, const std::string& name) {
  const auto present = readVfLinks(root, action.pf);
  for (const VfChange& change : action.vfs) {
    if (std::none_of(present.begin(), present.end(),
                     [&](const VfLink& link) { return link.index == change.index; })) {
      throw Error(name + ": no VF " + std::to_string(change.index) + ": the PF has " +
                      std::to_string(present.size()) + " VFs, numbered from 0",
                  "create more VFs, or choose another index");
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
  PhysicalFunction found = implementation_->readPf(pf, nullptr);
  for (RdmaDevice& rdma : found.rdma) {
    const std::string file = functionPath(pf) + "/infiniband/" + rdma.name + "/fw_ver";
    rdma.firmware = printable(implementation_->root.readText(file).value_or(""));
  }
  return found;
}

PhysicalFunction SystemKernel::readPf(const PciAddress& pf, const std::vector<PciAddress>& vfs) {
  return implementation_->readPf(pf, &vfs);
}

std::vector<PhysicalFunction> SystemKernel::readPfs(Serials serials) {
  return readPhysicalFunctions(implementation_->root, findPhysicalFunctions(implementation_->root),
                               implementation_->netlink(), nullptr, PfDetails::all, serials);
}

std::vector<PhysicalFunction> SystemKernel::readPfIdentities(Serials serials) {
  std::vector<PhysicalFunction> pfs;
  for (const PciAddress& address : findPhysicalFunctions(implementation_->root)) {
    if (auto pf = readPfIdentity(implementation_->root, address, serials)) {
      pfs.push_back(std::move(*pf));
    }
  }
  return pfs;
}

std::vector<PhysicalFunction> SystemKernel::readVfTable(Serials serials) {
  return readPhysicalFunctions(implementation_->root, findPhysicalFunctions(implementation_->root),
                               implementation_->netlink(), nullptr, PfDetails::table, serials);
}

std::optional<Device> SystemKernel::readFunction(const PciAddress& function) {
  return readPciFunction(implementation_->root, function);
}

std::map<unsigned, PciAddress> SystemKernel::vfAddresses(const PciAddress& pf) {
  std::map<unsigned, PciAddress> addresses;
  for (const VfLink& link : readVfLinks(implementation_->root, pf)) {
    addresses.emplace(link.index, link.address);
  }
  return addresses;
}

std::vector<Holder> SystemKernel::findHolders(const std::vector<PciAddress>& functions) {
  return host::findHolders(implementation_->root, functions, implementation_->netlink());
}

std::vector<std::string> SystemKernel::createVfs(const CreateVfs& action) {
  implementation_->requireLive(action.pf);
  implementation_->requireAttached(action.pf, "cannot create VFs");
  return host::createVfs(implementation_->root, implementation_->writer, action,
                         implementation_->createVfs(), implementation_->removeVfs());
}

void SystemKernel::removeVfs(const RemoveVfs& action) {
  implementation_->requireLive(action.pf);
  implementation_->requireAttached(action.pf, "cannot remove VFs");
  // Only the inverse of a creation can find a creation still in progress.
  const RemoveScope scope = action.autoprobe ? RemoveScope::inFlight : RemoveScope::present;
  const PhysicalFunction pf = implementation_->readPf(action.pf, nullptr, Serials::skip);
  host::removeVfs(implementation_->root, implementation_->writer, pf, findHolders(addressesOf(pf)),
                  scope, implementation_->removeVfs());
  if (action.autoprobe) {
    host::setAutoprobe(implementation_->writer, action.pf, *action.autoprobe);
  }
}

void SystemKernel::setVfProbing(const PciAddress& pf, bool on) {
  implementation_->requireLive(pf);
  host::setAutoprobe(implementation_->writer, pf, on);
}

std::vector<RefusedAttribute> SystemKernel::Implementation::configureVfs(const ConfigureVfs& action,
                                                                         Sent sent) {
  requireLive(action.pf);
  if (action.vfs.empty() && readNetdevs(root, action.pf).empty() && !hasVfFiles(root, action.pf)) {
    return {};  // nothing is reported, so that nothing differs
  }
  const auto netdev = netdevOrFiles(root, action.pf);
  const std::string name =
      netdev ? netdev->name + " (" + toString(action.pf) + ")" : "PF " + toString(action.pf);
  requireVfs(root, action, name);
  const auto deadline = this->netlink();
  const Device device = readDevice(root, action.pf, {.ports = Ports::netdevs, .linkLayer = true});
  const bool infiniband = device.linkLayer == LinkLayer::infiniband;
  NetlinkPort netlinkPort(netdev ? netdev->index : 0, infiniband, name, deadline, action.pf);
  OfedPort ofed(netdev ? &netlinkPort : nullptr, root, writer, action.pf, deadline);
  VectorPort port(infiniband ? static_cast<VfPort&>(ofed) : netlinkPort, root, writer, action.pf,
                  deadline);
  return host::configureVfs(
      port, action.vfs,
      {name, device.driver, mayConfigureLinks(), deniedRemedyFor(root, action.pf)}, deadline,
      action.otherwise.value_or(VfSettings{}), sent);
}

std::vector<RefusedAttribute> SystemKernel::configureVfs(const ConfigureVfs& action) {
  return implementation_->configureVfs(action, Sent::differing);
}

std::vector<RefusedAttribute> SystemKernel::restoreVfs(const ConfigureVfs& action) {
  return implementation_->configureVfs(action, Sent::all);
}

std::optional<VfTraffic> SystemKernel::vfTraffic(const PciAddress& pf, unsigned index) {
  implementation_->requireLive(pf);
  const auto netdev = netdevOrFiles(implementation_->root, pf);
  if (!netdev) {
    return std::nullopt;  // OFED has no counters of an InfiniBand VF in bytes
  }
  NetlinkPort port(netdev->index, false, netdev->name + " (" + toString(pf) + ")",
                   implementation_->netlink());
  return trafficOf(port.readTraffic(), index, readDriver(implementation_->root, pf));
}

MigratableVfs SystemKernel::migratableVfs(const PciAddress& pf) {
  const Root& root = implementation_->root;
  return root.isLive() && !portFault(root, pf) ? readMigratable(pf, implementation_->netlink())
                                               : MigratableVfs{};
}

void SystemKernel::bindDriver(const BindDriver& action) {
  implementation_->requireLive(action.function);
  implementation_->bind(action, implementation_->writer);
}

std::vector<std::exception_ptr> SystemKernel::bindDrivers(const std::vector<BindDriver>& actions) {
  for (const BindDriver& action : actions) {
    implementation_->requireLive(action.function);
  }
  return host::bindDrivers(implementation_->root, actions,
                           [&](const BindDriver& action, std::size_t worker) {
                             implementation_->bind(action, implementation_->writerOf(worker));
                           });
}

std::vector<ResetOutcome> SystemKernel::resetFunctions(const std::vector<ResetFunction>& actions,
                                                       MemoryChecks checks) {
  std::vector<PciAddress> functions;
  for (const ResetFunction& action : actions) {
    implementation_->requireLive(action.function);
    functions.push_back(action.function);
  }
  const Root& root = implementation_->root;
  const auto& limits = implementation_->deadlines;
  GuardedMemory memory;
  std::vector<Canary> canaries;
  for (const PciAddress& function : functions) {
    canaries.push_back(implementation_->hasTime(limits.bind + canaryTime)
                           ? plantCanary(root, implementation_->writer, memory, function, checks)
                           : Canary{{function, 0, {}}, "", "too little time was left"});
  }
  // A reset that gets less time than it may take would look like one of a device that hangs.
  if (!implementation_->hasTime(limits.bind)) {
    throw Error(
        "nothing was reset: too little time is left for " + counted(functions.size(), "reset"),
        "run `vfpass recover`");
  }
  auto outcomes =
      host::resetFunctions(root, implementation_->writer, functions, implementation_->bind());
  for (std::size_t at = 0; at < outcomes.size(); ++at) {
    outcomes[at].memory =
        !outcomes[at].done ? MemoryCheck{MemoryCheck::Result::notChecked, "it was not reset"}
        : implementation_->hasTime(canaryTime)
            ? findCanary(root, implementation_->writer, memory, canaries[at])
            : MemoryCheck{MemoryCheck::Result::notChecked, "too little time was left"};
  }
  return outcomes;
}

std::optional<ErrorCounts> SystemKernel::errorCounts(const PciAddress& function) {
  return readErrorCounts(implementation_->root, function);
}

std::optional<XidLog> SystemKernel::xidLog(const PciAddress& function) {
  return readXidLog(implementation_->root, function);
}

std::string SystemKernel::identityOf(const PciAddress& function,
                                     const std::optional<std::string>& serial) {
  return readIdentity(implementation_->root, function, serial,
                      implementation_->within(deadlines::serial));
}

std::map<std::string, std::vector<PciAddress>> SystemKernel::findIdentities(
    const std::set<std::string>& identities) {
  return functionsWithIdentities(implementation_->root, identities);
}

PfSettings SystemKernel::readPfSettings(const PciAddress& pf) {
  const Root& root = implementation_->root;
  PfSettings settings;
  if (!root.isLive()) {
    return settings;
  }
  // While a driver tries to revive a dead card, it holds its devlink instance for minutes.
  if (!portFault(root, pf)) {
    settings.eswitchMode = readEswitchMode(pf, implementation_->netlink());
  }
  if (!readNetdevs(root, pf).empty()) {
    settings.link = readLink(linkOf(root, pf), implementation_->netlink());
  }
  return settings;
}

std::optional<unsigned> SystemKernel::totalVfVectors(const PciAddress& pf) {
  return readTotalVectors(implementation_->root, implementation_->writer, pf,
                          implementation_->netlink());
}

void SystemKernel::setEswitchMode(const SetEswitchMode& action) {
  implementation_->requireLive(action.pf);
  if (readEswitchMode(action.pf, implementation_->netlink()) != action.mode) {
    implementation_->requireAttached(action.pf, "cannot change the eswitch mode");
    host::setEswitchMode(action.pf, action.mode, implementation_->eswitch());
  }
}

void SystemKernel::setMtu(const SetMtu& action) {
  implementation_->requireLive(action.pf);
  const auto deadline = implementation_->netlink();
  const NetdevHandle netdev = linkOf(implementation_->root, action.pf);
  if (readLink(netdev, deadline).mtu != action.mtu) {
    host::setMtu(netdev, action.mtu, deadline);
  }
}

void SystemKernel::setLinkUp(const SetLinkUp& action) {
  implementation_->requireLive(action.pf);
  const auto deadline = implementation_->netlink();
  const NetdevHandle netdev = linkOf(implementation_->root, action.pf);
  if (readLink(netdev, deadline).up != action.up) {
    setUp(netdev, action.up, deadline);
  }
}

std::vector<RdmaLink> SystemKernel::readRdmaLinks() {
  return host::readRdmaLinks(implementation_->root, implementation_->rdma());
}

std::vector<std::string> SystemKernel::rdmaUsers(std::uint32_t number) {
  implementation_->requireLive("RDMA device " + std::to_string(number));
  return host::rdmaUsers(implementation_->root, number, implementation_->rdma());
}

std::string SystemKernel::softRoceFault(const std::string& netdev) {
  return host::softRoceFault(implementation_->root, netdev);
}

std::uint32_t SystemKernel::addSoftRoceLink(const std::string& name, const std::string& netdev) {
  implementation_->requireLive("SoftRoCE link " + name);
  return host::addSoftRoceLink(implementation_->root, name, netdev, implementation_->rdma());
}

void SystemKernel::removeSoftRoceLink(const RdmaLink& link) {
  implementation_->requireLive("SoftRoCE link " + link.name);
  host::removeSoftRoceLink(implementation_->root, link, implementation_->rdma());
}

std::string SystemKernel::bootId() {
  const auto id = implementation_->root.readText("proc/sys/kernel/random/boot_id", 64);
  if (!id || id->empty()) {
    throw Error("cannot read /proc/sys/kernel/random/boot_id", "mount /proc");
  }
  return *id;
}

void SystemKernel::setPartition(const SetPartition& action,
                                const std::function<void()>& activating) {
  implementation_->requireLive("the fabric manager's partitions");
  host::setPartition(findFmpm(implementation_->root), action, activating,
                     implementation_->within(implementation_->deadlines.fabric));
}

bool SystemKernel::unsafeInterrupts() {
  return implementation_->root.readText(
             "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts") == "Y";
}

bool SystemKernel::iommuPresent() {
  return !implementation_->root.list("sys/kernel/iommu_groups").empty();
}

}  // namespace vfpass::host
