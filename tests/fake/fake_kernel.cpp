#include "fake/fake_kernel.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::fake {
namespace {

bool contains(const auto& values, const auto& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// The netdev that the VF's driver makes.
std::vector<Netdev> netdevsOf(const VirtualFunction& vf) {
  if (vf.driver != "mlx5_core") {
    return {};
  }
  return {{"vf" + std::to_string(vf.index), 1000 + static_cast<int>(vf.index), false, false}};
}

}  // namespace

template <typename Effect>
void FakeKernel::change(Effect effect) {
  const int number = effects++;
  if (number == killBeforeEffect) {
    throw Killed{};
  }
  if (number == failAtEffect) {
    throw Error("Input/output error (EIO)");
  }
  effect();
  if (number == killAfterEffect) {
    throw Killed{};
  }
}

PhysicalFunction& FakeKernel::addPf(const std::string& address, const std::string& netdev,
                                    unsigned totalVfs, unsigned vfCount) {
  PhysicalFunction pf;
  pf.address = *parsePciAddress(address);
  pf.path = "pci0000:00/0000:00:02.0/" + address;
  pf.driver = "mlx5_core";
  pf.netdevs = {{netdev}};
  pf.linkLayer = LinkLayer::ethernet;
  pf.totalVfs = totalVfs;
  pf.vfOffset = 1;
  pf.vfStride = 1;
  for (unsigned index = 0; index < vfCount; ++index) {
    addVf(pf, index, true);
  }
  pfSettings[pf.address] = {EswitchMode::legacy, LinkSettings{1500, false}};
  return pfs[pf.address] = pf;
}

void FakeKernel::addVf(PhysicalFunction& pf, unsigned index, bool probe) const {
  VirtualFunction vf;
  vf.index = index;
  vf.address = *plan::vfAddress(pf, index);
  vf.driver = probe ? "mlx5_core" : "";
  vf.netdevs = netdevsOf(vf);
  vf.iommuGroup = 100 + index;
  vf.settingsReadable = true;
  vf.settings = neutralSettings(false);
  vf.settings.spoofCheck = false;
  if (pf.totalVfVectors) {
    vf.settings.msixVectors = static_cast<std::uint16_t>(*pf.totalVfVectors / pf.totalVfs);
  }
  pf.vfs.push_back(vf);
}

PhysicalFunction& FakeKernel::at(const PciAddress& pf) {
  const auto found = pfs.find(pf);
  if (found == pfs.end()) {
    throw Error("no PF at " + toString(pf));
  }
  return found->second;
}

Device& FakeKernel::addFunction(const std::string& address, const std::string& driver) {
  Device function;
  function.address = *parsePciAddress(address);
  function.path = "pci0000:00/0000:00:03.0/" + address;
  function.classCode = 0x030200;
  function.driver = driver;
  function.iommuGroup = 200 + static_cast<unsigned>(functions.size());
  bootDrivers_[function.address] = driver;
  return functions[function.address] = function;
}

std::optional<PciAddress> FakeKernel::pfOf(const PciAddress& vf) const {
  const auto found = std::ranges::find_if(pfs, [&](const auto& pf) {
    return std::ranges::find(pf.second.vfs, vf, &VirtualFunction::address) != pf.second.vfs.end();
  });
  return found == pfs.end() ? std::nullopt : std::optional(found->first);
}

VirtualFunction* FakeKernel::findVf(const PciAddress& function) {
  for (auto& [address, pf] : pfs) {
    for (auto& vf : pf.vfs) {
      if (vf.address == function) {
        return &vf;
      }
    }
  }
  return nullptr;
}

std::optional<Device> FakeKernel::readFunction(const PciAddress& address) {
  if (const auto found = functions.find(address); found != functions.end()) {
    return found->second;
  }
  Device function;
  function.address = address;
  if (const VirtualFunction* vf = findVf(address)) {
    function.driver = vf->driver;
    function.driverOverride = vf->driverOverride;
    function.physicalFunction = pfOf(address);
    return function;
  }
  return pfs.contains(address) ? std::optional(function) : std::nullopt;
}

PhysicalFunction FakeKernel::readPf(const PciAddress& pf) {
  if (unreadable) {
    ++failedReads;
    throw Error(toString(pf) + ": cannot start a process");
  }
  return at(pf);
}

std::vector<PhysicalFunction> FakeKernel::readPfs() { return inventory().pfs; }

namespace {

// Like the real kernel, reports an open VFIO device and netdevs in use.
void addHolders(const Device& device, std::vector<Holder>& found) {
  const auto add = [&](HolderKind kind, const std::string& description) {
    found.push_back({kind, device.address, description, "stop it", std::nullopt});
  };
  if (device.vfioInUse) {
    add(HolderKind::vfio, device.vfioUser + " has it open through VFIO");
  }
  for (const auto& netdev : device.netdevs) {
    if (netdev.up || netdev.enslaved) {
      add(HolderKind::netdev,
          "netdev " + printable(netdev.name) + (netdev.up ? " is up" : " has a master"));
    }
  }
}

}  // namespace

std::map<unsigned, PciAddress> FakeKernel::vfAddresses(const PciAddress& address) {
  std::map<unsigned, PciAddress> addresses;
  if (const auto pf = pfs.find(address); pf != pfs.end()) {
    for (const auto& vf : pf->second.vfs) {
      addresses.emplace(vf.index, vf.address);
    }
  }
  return addresses;
}

std::vector<Holder> FakeKernel::findHolders(const std::vector<PciAddress>& addresses) {
  if (beforeFindHolders) {
    beforeFindHolders();
  }
  std::vector<Holder> found;
  for (const auto& address : addresses) {
    if (const VirtualFunction* vf = findVf(address)) {
      addHolders(*vf, found);
    } else if (const auto function = functions.find(address); function != functions.end()) {
      addHolders(function->second, found);
      for (const auto& use : function->second.uses) {
        found.push_back({HolderKind::block, address, use, "unmount it", std::nullopt});
      }
    }
    std::copy_if(holders.begin(), holders.end(), std::back_inserter(found),
                 [&](const Holder& holder) { return holder.device == address; });
  }
  return found;
}

std::vector<std::string> FakeKernel::createVfs(const CreateVfs& action) {
  PhysicalFunction& pf = at(action.pf);
  const bool sameCount = action.autoprobe && pf.vfs.size() == action.count;
  if (!pf.vfs.empty() && !sameCount) {
    throw Error("Device or resource busy (EBUSY)");
  }
  if (action.count > pf.totalVfs) {
    throw Error("Numerical result out of range (ERANGE)");
  }
  // Like the real implementation, changes probing for the creation; a kill can happen in between.
  const bool before = action.autoprobe.value_or(pf.probesVfs);
  pf.probesVfs = action.probe;
  try {
    change([&] {
      for (unsigned index = 0; index < action.count && !sameCount; ++index) {
        addVf(pf, index, action.probe);
        auto& left = leftOvers[action.pf][index];
        left.rate.reset();       // refused for a VF that does not exist
        left.linkState.reset();  // reset when the VF is created
        pf.vfs[index].settings = firstOf(left, pf.vfs[index].settings);
      }
    });
  } catch (const Error&) {
    pf.probesVfs = before;
    throw;
  }
  pf.probesVfs = before;
  return creationWarnings;
}

void FakeKernel::removeVfs(const RemoveVfs& action) {
  PhysicalFunction& pf = at(action.pf);
  for (const auto& vf : pf.vfs) {
    if (isVfioDriver(vf.driver)) {
      throw Error("VF " + std::to_string(vf.index) + " is on " + vf.driver, {}, ExitCode::refused);
    }
  }
  change([&] {
    for (const auto& vf : pf.vfs) {
      leftOvers[action.pf].erase(vf.index);
    }
    pf.vfs.clear();
    pf.probesVfs = action.autoprobe.value_or(pf.probesVfs);
  });
}

void FakeKernel::setVfProbing(const PciAddress& pf, bool on) {
  change([&] { at(pf).probesVfs = on; });
}

namespace {

// With the values that the other VFs get (ConfigureVfs::otherwise).
std::vector<VfChange> allChanges(const ConfigureVfs& action, const PhysicalFunction& pf) {
  std::vector<VfChange> changes = action.vfs;
  for (const auto& vf : pf.vfs) {
    const VfSettings rest =
        only(action.otherwise.value_or(VfSettings{}), differingAttributes(vf.settings, {}));
    const auto stated = std::ranges::find(changes, vf.index, &VfChange::index);
    if (stated == changes.end()) {
      changes.push_back({vf.index, rest, {}});
    } else {
      stated->settings = firstOf(stated->settings, rest);
    }
  }
  // Those that give vectors back come first (Configuration::sendByVf).
  std::stable_partition(changes.begin(), changes.end(), [&](const VfChange& change) {
    return change.settings.msixVectors && change.index < pf.vfs.size() &&
           pf.vfs[change.index].settings.msixVectors > change.settings.msixVectors;
  });
  return changes;
}

}  // namespace

namespace {

constexpr const char* boundVf = "Device or resource busy (EBUSY)";

// As sriov_vf_msix_count_store() and mlx5_set_msix_vec_count(); empty: accepted. `given`: what the
// VFs have by now.
std::string refusalOfVectors(const PhysicalFunction& pf, const VirtualFunction& vf,
                             unsigned vectors, std::map<unsigned, unsigned>& given) {
  if (vf.settings.msixVectors == vectors) {
    return {};  // nothing is written
  }
  if (pf.totalVfVectors.value_or(0) == 0) {
    return "Operation not supported (EOPNOTSUPP)";
  }
  if (!vf.driver.empty()) {
    return boundVf;
  }
  unsigned used = vectors;
  for (const auto& [index, others] : given) {
    used += index == vf.index ? 0 : others;
  }
  if (vectors < 2 || used > *pf.totalVfVectors) {
    return vectors < 2 ? "Invalid argument (EINVAL)" : "Cannot allocate memory (ENOMEM)";
  }
  given[vf.index] = vectors;
  return {};
}

std::map<unsigned, unsigned> vectorsOf(const PhysicalFunction& pf) {
  std::map<unsigned, unsigned> given;
  for (const auto& vf : pf.vfs) {
    given[vf.index] = vf.settings.msixVectors.value_or(0);
  }
  return given;
}

}  // namespace

std::vector<RefusedAttribute> FakeKernel::configureVfs(const ConfigureVfs& action) {
  return configure(action, false);
}

std::vector<RefusedAttribute> FakeKernel::restoreVfs(const ConfigureVfs& action) {
  return configure(action, true);
}

std::vector<RefusedAttribute> FakeKernel::configure(const ConfigureVfs& action, bool all) {
  PhysicalFunction& pf = at(action.pf);
  std::vector<RefusedAttribute> refused;
  std::vector<std::pair<unsigned, VfSettings>> accepted;
  std::string failure;
  std::map<unsigned, unsigned> given = vectorsOf(pf);
  const auto failing = failingAttributes[action.pf];
  for (const auto& wanted : allChanges(action, pf)) {
    if (wanted.index >= pf.vfs.size()) {
      throw Error("VF " + std::to_string(wanted.index) + ": Invalid argument (EINVAL)");
    }
    std::vector<Attribute> taken;
    const VfSettings known = all ? VfSettings{} : pf.vfs[wanted.index].settings;
    for (const Attribute attribute : differingAttributes(wanted.settings, known)) {
      const std::string refusal =
          attribute == Attribute::msixVectors
              ? refusalOfVectors(pf, pf.vfs[wanted.index], *wanted.settings.msixVectors, given)
              : "";
      if (!refusal.empty() && wanted.required.contains(attribute)) {
        throw Error("driver mlx5_core refuses msix-vectors: " + refusal);
      }
      if (!refusal.empty()) {
        refused.push_back({wanted.index, attribute, refusal, refusal == boundVf});  // isRefusal()
      } else if (contains(failing, attribute)) {
        const std::string reason = "Input/output error (EIO)";
        if (!differingAttributes(only(wanted.settings, {attribute}), pf.vfs[wanted.index].settings)
                 .empty()) {
          refused.push_back({wanted.index, attribute, reason, true});
        }
        if (failureSpreads) {
          failingAttributes[action.pf].assign(allAttributes.begin(), allAttributes.end());
        }
        if (wanted.required.contains(attribute)) {
          failure =
              "driver mlx5_core cannot set " + std::string(toString(attribute)) + ": " + reason;
        }
      } else if (!contains(refusedAttributes[action.pf], attribute)) {
        taken.push_back(attribute);
      } else if (wanted.required.contains(attribute)) {
        throw Error("driver mlx5_core refuses " + std::string(toString(attribute)));
      } else {
        refused.push_back({wanted.index, attribute, "Operation not supported (EOPNOTSUPP)"});
      }
    }
    accepted.emplace_back(wanted.index, only(wanted.settings, taken));
  }
  change([&] {
    for (const auto& [index, settings] : accepted) {
      pf.vfs[index].settings = firstOf(settings, pf.vfs[index].settings);
    }
  });
  if (!failure.empty()) {
    throw Error(failure + "; cannot restore the previous attributes");
  }
  return refused;
}

void FakeKernel::bind(Device& device, const BindDriver& action) {
  if (contains(hangingUnbinds, action.function) && device.driver != action.driver) {
    holders.push_back({HolderKind::pendingWrite, action.function,
                       "an earlier vfpass write is still pending in the kernel", "wait for it",
                       std::nullopt});
    throw TimeoutError("unbinding " + toString(action.function) + " did not return within 20 s");
  }
  const bool fails = contains(failingProbes, action.function) && !action.driver.empty() &&
                     action.driver != "vfio-pci" && device.driver != action.driver;
  change([&] {
    device.driver = fails ? "" : action.driver;
    device.driverOverride = action.driverOverride;
  });
  if (fails) {
    throw Error(toString(action.function) + ": cannot bind to " + action.driver +
                "; cannot restore the previous driver");
  }
}

MigratableVfs FakeKernel::migratableVfs(const PciAddress& pf) {
  MigratableVfs vfs;
  if (pfSettings[pf].eswitchMode == EswitchMode::switchdev) {
    for (const VirtualFunction& vf : at(pf).vfs) {
      vfs.emplace(vf.index, vf.migratable);
    }
  }
  return vfs;
}

// mlx5 changes `migratable` only of an unbound VF, so that a VF that keeps its driver loses it for
// that: bind() has it unbound in between.
void FakeKernel::bindVf(VirtualFunction& vf, const BindDriver& action) {
  const std::string before = vf.driver;
  std::optional<bool> wanted = vf.migratable ? action.migratable : std::nullopt;
  if (!action.migratable && action.driver != before &&
      (action.driver == mlx5MigrationDriver || before == mlx5MigrationDriver)) {
    wanted = action.driver == mlx5MigrationDriver;
  }
  if (wanted == true && !vf.migratable) {
    throw Error("making VF " + std::to_string(vf.index) +
                " migratable failed: neither its kernel nor its firmware can");
  }
  bind(vf, action);
  if (action.driver == mlx5MigrationDriver) {
    wanted = wanted.value_or(true);
  }
  if (wanted && vf.migratable) {
    vf.migratable = wanted;
  }
  if (vf.driver != before) {
    vf.netdevs = netdevsOf(vf);
  }
}

void FakeKernel::bindDriver(const BindDriver& action) {
  if (VirtualFunction* vf = findVf(action.function)) {
    bindVf(*vf, action);
  } else if (const auto found = functions.find(action.function); found != functions.end()) {
    bind(found->second, action);
  } else {
    throw Error("no PCI function " + toString(action.function) + ": No such device (ENODEV)");
  }
}

// Sequential; like the real implementation, continues after a failure.
std::vector<std::exception_ptr> FakeKernel::bindDrivers(const std::vector<BindDriver>& actions) {
  std::vector<std::exception_ptr> failures;
  for (const BindDriver& action : actions) {
    failures.push_back(caught([&] { bindDriver(action); }));
  }
  if (losesAnswersOfBindings) {
    throw std::system_error(EAGAIN, std::generic_category(), "no thread");
  }
  return failures;
}

void FakeKernel::resetFunction(const ResetFunction& action) {
  if (!readFunction(action.function)) {
    throw Error("no PCI function " + toString(action.function) + ": No such device (ENODEV)");
  }
  if (contains(brokenResets, action.function)) {
    throw Error(toString(action.function) + ": cannot reset: Input/output error (EIO)");
  }
  if (contains(hangingResets, action.function)) {
    throw TimeoutError(toString(action.function) + ": the reset did not return");
  }
  change([] {});
}

void FakeKernel::finishPendingWrites() {
  for (const auto& holder : holders) {
    if (VirtualFunction* vf =
            holder.kind == HolderKind::pendingWrite ? findVf(holder.device) : nullptr) {
      vf->driver.clear();
    } else if (holder.kind == HolderKind::pendingWrite && functions.contains(holder.device)) {
      functions[holder.device].driver.clear();
    }
  }
  std::erase_if(holders,
                [](const Holder& holder) { return holder.kind == HolderKind::pendingWrite; });
  hangingUnbinds.clear();
}

// Sequential; like the real implementation, continues after a failure.
std::vector<ResetOutcome> FakeKernel::resetFunctions(const std::vector<ResetFunction>& actions,
                                                     MemoryChecks memory) {
  std::vector<ResetOutcome> outcomes;
  for (const ResetFunction& action : actions) {
    const auto failure = caught([&] { resetFunction(action); });
    outcomes.push_back({{"flr"},
                        !failure,
                        failure,
                        memory == MemoryChecks::on
                            ? memories[action.function]
                            : MemoryCheck{MemoryCheck::Result::notChecked, "off"}});
  }
  return outcomes;
}

std::optional<ErrorCounts> FakeKernel::errorCounts(const PciAddress& function) {
  const auto found = errors.find(function);
  return found == errors.end() ? std::nullopt : std::optional(found->second);
}

std::optional<XidLog> FakeKernel::xidLog(const PciAddress& function) {
  const auto found = xidLogs.find(function);
  return found == xidLogs.end() ? std::nullopt : std::optional(found->second);
}

std::string FakeKernel::identityOfCard(const PciAddress& card) {
  const auto found = identities.find(card);
  if (!pfs.contains(card) && !functions.contains(card)) {
    return {};
  }
  ++identityReads[card];
  beforeIdentity();
  return found == identities.end() ? std::string() : found->second;
}

std::string FakeKernel::identityOf(const PciAddress& function,
                                   const std::optional<std::string>& /*serial*/) {
  for (const auto& [address, pf] : pfs) {
    const auto own = std::ranges::find(pf.vfs, function, &VirtualFunction::address);
    if (own != pf.vfs.end()) {
      return identityOfVf(identityOfCard(address), own->index);
    }
  }
  return identityOfCard(function);
}

std::map<std::string, std::vector<PciAddress>> FakeKernel::findIdentities(
    const std::set<std::string>& wanted) {
  std::map<std::string, std::vector<PciAddress>> found;
  const auto add = [&](const std::string& identity, const PciAddress& function) {
    if (wanted.contains(identity)) {
      found[identity].push_back(function);
    }
  };
  for (const auto& [address, known] : identities) {
    const std::string identity = identityOfCard(address);
    add(identity, address);
    const auto pf = pfs.find(address);
    for (const auto& vf : pf == pfs.end() ? std::vector<VirtualFunction>{} : pf->second.vfs) {
      add(identityOfVf(identity, vf.index), vf.address);
    }
  }
  return found;
}

PfSettings FakeKernel::readPfSettings(const PciAddress& pf) {
  PfSettings settings = pfSettings[at(pf).address];
  if (faultOfPort(at(pf))) {
    settings.eswitchMode.reset();
  }
  return settings;
}

std::optional<unsigned> FakeKernel::totalVfVectors(const PciAddress& pf) {
  return at(pf).totalVfVectors.value_or(0);
}

void FakeKernel::setEswitchMode(const SetEswitchMode& action) {
  PfSettings& settings = pfSettings[at(action.pf).address];
  if (!settings.eswitchMode) {
    throw Error("its driver reports no eswitch mode over devlink");
  }
  if (settings.eswitchMode == action.mode) {
    return;
  }
  if (!at(action.pf).vfs.empty()) {
    throw Error("Device or resource busy (EBUSY)");
  }
  change([&] { settings = {action.mode, LinkSettings{1500, false}}; });  // the netdev is new
}

void FakeKernel::setMtu(const SetMtu& action) {
  LinkSettings& link = pfSettings[at(action.pf).address].link.value();
  if (link.mtu != action.mtu) {
    change([&] { link.mtu = action.mtu; });
  }
}

void FakeKernel::setLinkUp(const SetLinkUp& action) {
  LinkSettings& link = pfSettings[at(action.pf).address].link.value();
  if (link.up != action.up) {
    change([&] { link.up = action.up; });
  }
}

void FakeKernel::setPartition(const SetPartition& action, const std::function<void()>& activating) {
  const std::set<unsigned> modules(action.modules.begin(), action.modules.end());
  const auto set = [&](unsigned id, bool active) {
    change([&] { std::ranges::find(partitions, id, &FabricPartition::id)->active = active; });
  };
  const FabricPartition* wanted = findPartition(partitions, modules);
  if (!action.active) {
    if (wanted != nullptr && wanted->active) {
      set(wanted->id, false);
    }
    return;
  }
  if (wanted == nullptr || activeOverlap(partitions, *wanted) != nullptr) {
    throw Error("no partition can be activated");
  }
  if (!wanted->active) {
    activating();
    set(wanted->id, true);
  }
}

std::vector<std::string> FakeKernel::rdmaUsers(std::uint32_t number) { return usersOfRdma[number]; }

std::string FakeKernel::softRoceFault(const std::string& netdev) { return softRoceFaults[netdev]; }

std::uint32_t FakeKernel::addSoftRoceLink(const std::string& name, const std::string& netdev) {
  for (const auto& link : rdmaLinks) {
    if (link.name == name || link.netdev == netdev) {
      throw Error("SoftRoCE link " + name + ": File exists (EEXIST)");
    }
  }
  if (!softRoceFaults[netdev].empty()) {
    throw Error("SoftRoCE link " + name + ": Invalid argument (EINVAL)");
  }
  change([&] { rdmaLinks.push_back({name, true, netdev, ++lastRdmaNumber_}); });
  if (std::exchange(losesReplyOfLink, false)) {
    throw Error("SoftRoCE link " + name + ": no answer");
  }
  return lastRdmaNumber_;
}

void FakeKernel::removeSoftRoceLink(const RdmaLink& link) {
  const auto found = std::find_if(rdmaLinks.begin(), rdmaLinks.end(), [&](const RdmaLink& each) {
    return link.number && each.number == link.number;
  });
  if (found != rdmaLinks.end()) {
    change([&] { rdmaLinks.erase(found); });
  }
}

void FakeKernel::reboot() {
  boot += "'";
  std::erase_if(rdmaLinks, [](const RdmaLink& link) { return link.softRoce; });
  for (auto& [address, pf] : pfs) {
    pf.vfs.clear();
    leftOvers.clear();
    pfSettings[address] = {EswitchMode::legacy, LinkSettings{1500, false}};
  }
  for (auto& [address, function] : functions) {
    function.driver = bootDrivers_[address];
    function.driverOverride.clear();
  }
}

Inventory FakeKernel::inventory() {
  Inventory inventory;
  inventory.iommuPresent = true;
  for (const auto& [address, pf] : pfs) {
    inventory.pfs.push_back(pf);
    inventory.pfs.back().eswitchMode = pfSettings[address].eswitchMode;
  }
  for (const auto& [address, function] : functions) {
    inventory.functions.push_back(function);
  }
  std::vector<PciAddress> addresses;
  for (const auto& [address, function] : functions) {
    addresses.push_back(address);
  }
  for (const auto& [address, pf] : pfs) {
    for (const auto& vf : pf.vfs) {
      addresses.push_back(vf.address);
    }
  }
  inventory.holders = findHolders(addresses);
  return inventory;
}

}  // namespace vfpass::fake
