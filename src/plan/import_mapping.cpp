#include "vfpass/plan/import_mapping.hpp"

#include <algorithm>
#include <iterator>

#include "import_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::plan {
namespace {

bool isHostdevPool(const ImportInput& input, const std::string& network) {
  const auto pool = std::ranges::find(input.pools, network, &NetworkPool::network);
  return pool != input.pools.end() && (!pool->devices.empty() || !pool->pfNetdevs.empty());
}

bool isNetdevOfVf(const ImportInput& input, const std::string& name) {
  const auto hasIt = [&](const VirtualFunction& vf) {
    return std::ranges::find(vf.netdevs, name, &Netdev::name) != vf.netdevs.end();
  };
  return std::ranges::any_of(input.inventory.pfs, [&](const PhysicalFunction& pf) {
    return std::ranges::any_of(pf.vfs, hasIt);
  });
}

// Of these only a network with a pool of devices, and a macvtap above a VF, concern the host's
// devices: one above a PF or a bond shares it.
bool isDeviceOfHost(const ImportInput& input, const HandMadeDevice& device) {
  switch (device.kind) {
    case HandMadeKind::fromNetwork:
      return isHostdevPool(input, device.network);
    case HandMadeKind::macvtap:
      return isNetdevOfVf(input, device.netdev);
    default:
      return true;
  }
}

// The running domain shows an interface of a network's pool as <interface type='hostdev'>, with the
// same MAC (virDomainNetDefFormat with the actual type).
bool isFromNetwork(const ImportInput& input, const HandMadeDevice& running) {
  return std::ranges::any_of(input.configured, [&](const HandMadeDevice& each) {
    return each.kind == HandMadeKind::fromNetwork && each.mac && each.mac == running.mac;
  });
}

void addRunningOnly(const ImportInput& input, ImportedMapping& mapping) {
  for (const HandMadeDevice& device : input.running) {
    const bool configured =
        !device.host || std::ranges::find(input.configured, device.host, &HandMadeDevice::host) !=
                            input.configured.end();
    if (!configured && !device.ours && !isFromNetwork(input, device)) {
      mapping.leftOut.push_back(
          leaveOut(device, LeftOutReason::runningOnly,
                   "only the running domain has it; it ends with the domain",
                   "add it to the persistent configuration as well (`virsh attach-device "
                   "--config`), then import again"));
    }
  }
}

std::string entryKindOf(const Device& function) {
  switch (function.role) {
    case FunctionRole::gpu:
      return "gpu";
    case FunctionRole::nvswitch:
      return "nvswitch";
    case FunctionRole::nvlinkManagement:
      return "nvlink-mgmt";
    default:
      return "function";
  }
}

/// Makes the entries of one mapping.
class Import {
 public:
  explicit Import(const ImportInput& input) : input_(input) {}

  ImportedMapping run() {
    for (const HandMadeDevice& device : input_.configured) {
      if (isDeviceOfHost(input_, device)) {
        add(device);
      }
    }
    addRunningOnly(input_, mapping_);
    addAllowances();
    addNvlink();
    addUnclear();
    return std::move(mapping_);
  }

 private:
  void add(const HandMadeDevice& device) {
    auto leftOut = leftOutByElement(input_, device);
    if (!leftOut) {
      leftOut = leftOutByDevice(input_, device);
    }
    if (leftOut) {
      mapping_.leftOut.push_back(std::move(*leftOut));
      return;
    }
    const PhysicalFunction* pf = pfOfVf(input_.inventory, *device.host);
    if (pf != nullptr) {
      addVf(device, *pf);
    } else {
      addFunction(device);
    }
  }

  void addVf(const HandMadeDevice& device, const PhysicalFunction& pf) {
    const VirtualFunction& vf = *std::ranges::find(pf.vfs, *device.host, &VirtualFunction::address);
    if (auto leftOut = leftOutByValues(input_, device, pf, vf)) {
      mapping_.leftOut.push_back(std::move(*leftOut));
      return;
    }
    ImportedVf entry = importVf(input_, device, pf, vf);
    if (const ImportedVf* other = withSameMac(entry)) {
      mapping_.leftOut.push_back(leaveOut(
          device, LeftOutReason::settings,
          "it has the MAC " + toString(*entry.settings.mac) + " of " + toString(other->device),
          "give one of them another MAC"));
      return;
    }
    entry.name = names_.nameOf(device, "vf");
    mapping_.vfs.push_back(std::move(entry));
  }

  [[nodiscard]] const ImportedVf* withSameMac(const ImportedVf& entry) const {
    const auto found = std::ranges::find_if(mapping_.vfs, [&](const ImportedVf& other) {
      return entry.settings.mac && other.settings.mac == entry.settings.mac;
    });
    return found == mapping_.vfs.end() ? nullptr : &*found;
  }

  void addFunction(const HandMadeDevice& device) {
    const Device& function = *findFunction(input_.topology, *device.host);
    ImportedFunction entry;
    entry.device = function.address;
    entry.isGpu = function.role == FunctionRole::gpu;
    entry.model = function.model;
    entry.driver = device.driver == "vfio" ? "" : device.driver;
    entry.name = names_.nameOf(device, entryKindOf(function));
    mapping_.functions.push_back(std::move(entry));
  }

  [[nodiscard]] const Device* deviceAt(const PciAddress& address) const {
    if (const Device* function = findFunction(input_.inventory, address)) {
      return function;
    }
    const PhysicalFunction* pf = pfOfVf(input_.inventory, address);
    return pf == nullptr ? nullptr
                         : &*std::ranges::find(pf->vfs, address, &VirtualFunction::address);
  }

  // The guest has the devices already; attach refuses these risks unless the mapping names them.
  void addAllowances() {
    DeviceTerms terms;
    terms.unsafeInterrupts = input_.inventory.unsafeInterrupts;
    terms.iommuPresent = input_.inventory.iommuPresent;
    for (const PciAddress& address : devices()) {
      terms.companions.insert(address);
    }
    for (const PciAddress& address : devices()) {
      for (const Allowance risk : {Allowance::sharedIommuGroup, Allowance::unsafeInterrupts}) {
        allowFor(*deviceAt(address), terms, risk);
      }
    }
    for (const ImportedVf& vf : mapping_.vfs) {
      if (vf.settings.trust.value_or(false)) {
        mapping_.allow.emplace(Allowance::trust, vf.name + " is a trusted VF");
      }
    }
  }

  void allowFor(const Device& device, const DeviceTerms& terms, Allowance risk) {
    DeviceTerms others = terms;
    others.allow = {Allowance::sharedIommuGroup, Allowance::unsafeInterrupts};
    others.allow.erase(risk);
    const auto objections = checkIsolation(toString(device.address), device, others);
    if (!objections.empty() && device.iommuGroup) {
      mapping_.allow.emplace(risk, printable(objections.front().message));
    }
  }

  [[nodiscard]] std::vector<PciAddress> devices() const {
    std::vector<PciAddress> all;
    std::ranges::transform(mapping_.vfs, std::back_inserter(all), &ImportedVf::device);
    std::ranges::transform(mapping_.functions, std::back_inserter(all), &ImportedFunction::device);
    return all;
  }

  // Of the modes that attach accepts for these GPUs, the one that changes least.
  void addNvlink() {
    Mapping mapping;
    for (const ImportedFunction& function : mapping_.functions) {
      mapping.functions.push_back({function.name, function.device, {}});
    }
    if (topology::judgeNvlink(input_.topology, mapping).summary.empty()) {
      return;
    }
    for (const NvlinkMode mode : {NvlinkMode::all, NvlinkMode::partition, NvlinkMode::disabled}) {
      mapping.nvlink = mode;
      if (topology::judgeNvlink(input_.topology, mapping).faults.empty()) {
        mapping_.nvlink = mode;
        return;
      }
    }
  }

  // Settings of these PFs, and of VFs of a PF that the file does not name clearly.
  void addUnclear() {
    for (const BootPolicy& policy : input_.bootPolicies) {
      const bool ofPf = std::ranges::any_of(
          mapping_.vfs, [&](const ImportedVf& vf) { return policy.pf == vf.pf; });
      if (!mapping_.vfs.empty() && (!policy.pf || (ofPf && !policy.vf))) {
        mapping_.unclear.push_back(policy);
      }
    }
  }

  const ImportInput& input_;
  ImportedMapping mapping_;
  EntryNames names_;
};

// The count that a file sets counts where the PF has no VFs now: they come with the next boot.
void importCount(const PhysicalFunction& pf, ImportedPf& entry) {
  entry.vfCount = static_cast<unsigned>(pf.vfs.size());
  for (const BootPolicy& policy : entry.policies) {
    if (entry.vfCount == 0 && policy.vfCount.value_or(0) > 0) {
      entry.vfCount = std::min(*policy.vfCount, std::max(pf.totalVfs, 1U));
      entry.countSource = policy.file;
    }
  }
}

ImportedPf importPf(const PhysicalFunction& pf, const PfSettings& settings,
                    const std::vector<BootPolicy>& bootPolicies) {
  ImportedPf entry;
  entry.pf = pf.address;
  entry.netdev = pf.netdev();
  entry.probesVfs = pf.probesVfs;
  entry.eswitchMode = settings.eswitchMode;
  entry.link = settings.link;
  std::ranges::copy_if(bootPolicies, std::back_inserter(entry.policies),
                       [&](const BootPolicy& policy) { return policy.pf == pf.address; });
  importCount(pf, entry);
  return entry;
}

}  // namespace

bool isEntryName(std::string_view text) {
  constexpr std::size_t longest = 32;  // mapping.schema.json
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
  });
}

std::string EntryNames::nameOf(const HandMadeDevice& device, const std::string& kind) {
  constexpr std::string_view prefix = "ua-";
  const std::string_view alias = device.alias;
  const auto own = alias.starts_with(prefix) ? alias.substr(prefix.size()) : std::string_view();
  if (isEntryName(own) && taken_.insert(std::string(own)).second) {
    return std::string(own);
  }
  for (unsigned number = 0;; ++number) {
    std::string name = kind + std::to_string(number);
    if (taken_.insert(name).second) {
      return name;
    }
  }
}

ImportedMapping importMapping(const ImportInput& input) { return Import(input).run(); }

ImportedHost importHost(const Inventory& inventory,
                        const std::map<PciAddress, PfSettings>& settings,
                        const std::vector<BootPolicy>& bootPolicies) {
  ImportedHost host;
  for (const PhysicalFunction& pf : inventory.pfs) {
    const auto found = settings.find(pf.address);
    ImportedPf entry =
        importPf(pf, found == settings.end() ? PfSettings{} : found->second, bootPolicies);
    if (!pf.vfs.empty() || !entry.policies.empty()) {
      host.pfs.push_back(std::move(entry));
    }
  }
  std::ranges::copy_if(bootPolicies, std::back_inserter(host.unclear),
                       [](const BootPolicy& policy) { return !policy.pf; });
  return host;
}

}  // namespace vfpass::plan
