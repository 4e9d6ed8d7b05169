#include "plan_vf_creation.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

bool isSwitchdev(const PhysicalFunction& pf) {
  return pf.eswitchMode == EswitchMode::switchdev && pf.driver == "mlx5_core";
}

bool isWithoutVlan(const VfSettings& settings) {
  return !settings.vlan || (settings.vlan->id == 0 && settings.vlan->qos == 0);
}

// VLAN 0 needs nothing: without a rule for its representor a VF has no VLAN.
bool isNeeded(const MappedVf& entry, Attribute attribute) {
  if (attribute == Attribute::vlan) {
    return !isWithoutVlan(entry.settings);
  }
  return entry.required.contains(attribute);
}

std::string namesOf(const std::vector<Attribute>& attributes) {
  std::vector<std::string> names;
  for (const Attribute attribute : attributes) {
    names.emplace_back(toString(attribute));
  }
  return join(names, ", ");
}

std::string representorOf(const PhysicalFunction& pf, unsigned index) {
  return index < pf.vfs.size() ? printable(pf.vfs[index].representor) : "";
}

// How the VF gets its VLAN by a rule on the host.
std::string vlanRule(const MappedVf& entry, const PhysicalFunction& pf, unsigned index) {
  const std::string netdev = representorOf(pf, index);
  const std::string port =
      "pf" + std::to_string(pf.address.function) + "vf" + std::to_string(index);
  return ", make the VF's representor a port of a bridge with vlan_filtering, then run `bridge "
         "vlan add dev " +
         (netdev.empty() ? "REPRESENTOR" : netdev) + " vid " +
         std::to_string(entry.settings.vlan->id) + " pvid untagged`" +
         (netdev.empty() ? " with the netdev that has phys_port_name " + port : "");
}

}  // namespace

std::set<Attribute> lackingAttributes(const PhysicalFunction& pf) {
  return isSwitchdev(pf) ? std::set(legacyOnlyAttributes.begin(), legacyOnlyAttributes.end())
                         : std::set<Attribute>{};
}

void checkSwitchdev(const MappedVf& entry, const PhysicalFunction& pf, unsigned index,
                    std::vector<Objection>& objections) {
  if (!isSwitchdev(pf)) {
    return;
  }
  std::vector<Attribute> needed;
  std::ranges::copy_if(legacyOnlyAttributes, std::back_inserter(needed),
                       [&](Attribute attribute) { return isNeeded(entry, attribute); });
  if (needed.empty()) {
    return;
  }
  const std::string device = toString(pf.address);
  const std::string legacy =
      "set `embedded-switch-mode: legacy` for the PF in host.yaml and run `vfpass host apply`, or, "
      "while nothing uses its VFs, run `devlink dev eswitch set pci/" +
      device + " mode legacy`";
  const std::string rule = "remove " + namesOf(needed) + " from the mapping" +
                           (isWithoutVlan(entry.settings) ? "" : vlanRule(entry, pf, index));
  objections.push_back({toString(entry.place) + ": " + entry.name + " requires " + namesOf(needed) +
                            ", but the driver of PF " + device +
                            " cannot set that in switchdev mode",
                        legacy + "; or " + rule, ExitCode::refused});
}

std::vector<std::string> switchdevNotes(const AttachInput& input,
                                        const std::vector<Lease>& leases) {
  std::vector<std::string> notes;
  for (const auto& entry : input.mapping.vfs) {
    const auto lease =
        std::ranges::find_if(leases, [&](const Lease& each) { return each.entry == entry.name; });
    const PhysicalFunction* pf =
        lease == leases.end() ? nullptr : findPf(input.inventory, lease->pf);
    if (pf == nullptr || !isVf(*lease) || !isSwitchdev(*pf)) {
      continue;
    }
    std::vector<Attribute> left = differingAttributes(entry.settings, acceptedSettings(*lease));
    std::erase_if(left,
                  [&](Attribute attribute) { return !vfOf(*lease).refused.contains(attribute); });
    std::erase(left, Attribute::msixVectors);  // has a note of its own
    if (!left.empty()) {
      notes.push_back(entry.name + ": the driver of PF " + toString(pf->address) + " cannot set " +
                      namesOf(left) + " in switchdev mode; this is left out");
    }
  }
  return notes;
}

}  // namespace vfpass::plan
