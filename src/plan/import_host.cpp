#include <algorithm>

#include "vfpass/plan/import_mapping.hpp"

namespace vfpass::plan {
namespace {

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
