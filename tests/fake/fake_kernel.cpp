#include "fake/fake_kernel.hpp"

#include <algorithm>

#include "vfpass/plan/select_pf.hpp"

namespace vfpass::fake {
namespace {

template <typename Value>
void put(std::optional<Value>& target, const std::optional<Value>& source) {
  if (source) {
    target = source;
  }
}

void merge(VfSettings& target, const VfSettings& source) {
  put(target.mac, source.mac);
  put(target.vlan, source.vlan);
  put(target.rate, source.rate);
  put(target.spoofCheck, source.spoofCheck);
  put(target.linkState, source.linkState);
  put(target.trust, source.trust);
  put(target.nodeGuid, source.nodeGuid);
  put(target.portGuid, source.portGuid);
}

bool contains(const auto& values, const auto& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
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
  pf.netdev = netdev;
  pf.linkLayer = LinkLayer::ethernet;
  pf.sriovCapable = true;
  pf.totalVfs = totalVfs;
  pf.vfOffset = 1;
  pf.vfStride = 1;
  for (unsigned index = 0; index < vfCount; ++index) {
    addVf(pf, index, true);
  }
  return pfs[pf.address] = pf;
}

void FakeKernel::addVf(PhysicalFunction& pf, unsigned index, bool probe) const {
  VirtualFunction vf;
  vf.index = index;
  vf.address = *plan::vfAddress(pf, index);
  vf.driver = probe ? "mlx5_core" : "";
  vf.iommuGroup = 100 + index;
  vf.settingsReadable = true;
  vf.settings.mac = MacAddress{};
  vf.settings.vlan = Vlan{};
  vf.settings.rate = Rate{};
  vf.settings.spoofCheck = false;
  vf.settings.linkState = LinkState::automatic;
  vf.settings.trust = false;
  pf.vfs.push_back(vf);
}

PhysicalFunction& FakeKernel::at(const PciAddress& pf) {
  const auto found = pfs.find(pf);
  if (found == pfs.end()) {
    throw Error("no PF at " + toString(pf));
  }
  return found->second;
}

PciFunction& FakeKernel::addFunction(const std::string& address, const std::string& driver) {
  PciFunction function;
  function.address = *parsePciAddress(address);
  function.path = "pci0000:00/0000:00:03.0/" + address;
  function.classCode = 0x030200;
  function.driver = driver;
  function.iommuGroup = 200 + static_cast<unsigned>(functions.size());
  bootDrivers_[function.address] = driver;
  return functions[function.address] = function;
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

std::optional<PciFunction> FakeKernel::readFunction(const PciAddress& address) {
  if (const auto found = functions.find(address); found != functions.end()) {
    return found->second;
  }
  PciFunction function;
  function.address = address;
  if (const VirtualFunction* vf = findVf(address)) {
    function.driver = vf->driver;
    function.driverOverride = vf->driverOverride;
    return function;
  }
  return pfs.contains(address) ? std::optional(function) : std::nullopt;
}

PhysicalFunction FakeKernel::readPf(const PciAddress& pf) { return at(pf); }

std::vector<PhysicalFunction> FakeKernel::readPfs() { return inventory().pfs; }

void FakeKernel::createVfs(const CreateVfs& action) {
  PhysicalFunction& pf = at(action.pf);
  if (!pf.vfs.empty()) {
    throw Error("Device or resource busy (EBUSY)");
  }
  if (action.count > pf.totalVfs) {
    throw Error("Numerical result out of range (ERANGE)");
  }
  // As the real one: probing is switched for the creation, and a kill can come in between.
  const bool before = pf.probesVfs;
  pf.probesVfs = action.probe;
  try {
    change([&] {
      for (unsigned index = 0; index < action.count; ++index) {
        addVf(pf, index, action.probe);
      }
    });
  } catch (const Error&) {
    pf.probesVfs = before;
    throw;
  }
  pf.probesVfs = before;
}

void FakeKernel::removeVfs(const RemoveVfs& action) {
  PhysicalFunction& pf = at(action.pf);
  for (const auto& vf : pf.vfs) {
    if (vf.driver == "vfio-pci") {
      throw Error("VF " + std::to_string(vf.index) + " is on vfio-pci", {}, ExitCode::refused);
    }
  }
  change([&] {
    pf.vfs.clear();
    pf.probesVfs = action.autoprobe.value_or(pf.probesVfs);
  });
}

std::vector<RefusedAttribute> FakeKernel::configureVfs(const ConfigureVfs& action) {
  PhysicalFunction& pf = at(action.pf);
  std::vector<RefusedAttribute> refused;
  std::vector<std::pair<unsigned, VfSettings>> accepted;
  for (const auto& wanted : action.vfs) {
    if (wanted.index >= pf.vfs.size()) {
      throw Error("VF " + std::to_string(wanted.index) + ": Invalid argument (EINVAL)");
    }
    std::vector<Attribute> taken;
    for (const Attribute attribute :
         differingAttributes(wanted.settings, pf.vfs[wanted.index].settings)) {
      if (!contains(refusedAttributes[action.pf], attribute)) {
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
      merge(pf.vfs[index].settings, settings);
    }
  });
  return refused;
}

void FakeKernel::bind(auto& device, const BindDriver& action) {
  if (contains(hangingUnbinds, action.function) && device.driver != action.driver) {
    throw Error("unbinding " + toString(action.function) + " did not return within 20 s");
  }
  change([&] {
    device.driver = action.driver;
    device.driverOverride = action.driverOverride;
  });
}

void FakeKernel::bindDriver(const BindDriver& action) {
  if (VirtualFunction* vf = findVf(action.function)) {
    bind(*vf, action);
  } else if (const auto found = functions.find(action.function); found != functions.end()) {
    bind(found->second, action);
  } else {
    throw Error("no PCI function " + toString(action.function) + ": No such device (ENODEV)");
  }
}

void FakeKernel::resetFunction(const ResetFunction& action) {
  if (!readFunction(action.function)) {
    throw Error("no PCI function " + toString(action.function) + ": No such device (ENODEV)");
  }
  change([] {});
}

void FakeKernel::reboot() {
  boot += "'";
  for (auto& [address, pf] : pfs) {
    pf.vfs.clear();
  }
  for (auto& [address, function] : functions) {
    function.driver = bootDrivers_[address];
    function.driverOverride.clear();
  }
}

Inventory FakeKernel::inventory() const {
  Inventory inventory;
  inventory.iommuPresent = true;
  for (const auto& [address, pf] : pfs) {
    inventory.pfs.push_back(pf);
  }
  for (const auto& [address, function] : functions) {
    inventory.functions.push_back(function);
  }
  return inventory;
}

}  // namespace vfpass::fake
