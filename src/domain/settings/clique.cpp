#include <algorithm>

#include "setting_proposals.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/version.hpp"

namespace vfpass::settings {
namespace {

constexpr std::uint32_t displayClass = 0x03;

std::size_t numberOf(const Input& input, const Device& function) {
  return static_cast<std::size_t>(&function - input.topology.functions.data());
}

std::string nameOf(const GuestDevice& device) {
  return device.name + " (" + toString(device.function) + ")";
}

// QEMU refuses the property for any other device (vfio_add_nv_gpudirect_cap).
bool isNvidiaGpu(const Input& input, const GuestDevice& device) {
  const Device* function = functionOf(input, device);
  return function != nullptr && function->vendor == nvidia &&
         function->classCode >> 16U == displayClass;
}

// The driver assumes that the GPUs of a clique reach each other below the host bridges.
void checkPair(const Input& input, const GuestDevice& one, const GuestDevice& other,
               std::vector<Fault>& faults) {
  const auto distance = topology::distance(input.topology, numberOf(input, *functionOf(input, one)),
                                           numberOf(input, *functionOf(input, other)));
  if (distance == topology::Distance::pix || distance == topology::Distance::pxb) {
    return;
  }
  faults.push_back(
      {nameOf(one) + " and " + nameOf(other) + " share clique " + std::to_string(*one.clique) +
           ", but are at distance " + std::string(toString(distance)) +
           " on the host: peer-to-peer traffic between them would leave the PCIe switches",
       "use the same `clique:` number only for GPUs at distance PIX or PXB (see `vfpass topo`)"});
}

void checkDevice(const Input& input, const GuestDevice& device, std::vector<Fault>& faults) {
  if (!isNvidiaGpu(input, device)) {
    faults.push_back({nameOf(device) + " has `clique:`, but is not an NVIDIA GPU of this host",
                      "remove `clique:` from its entry"});
  }
}

std::string overrideElement(const GuestDevice& device) {
  return "<qemu:device alias='" + std::string(aliasPrefix) + device.name +
         "'><qemu:frontend><qemu:property name='x-nv-gpudirect-clique' type='unsigned' value='" +
         std::to_string(*device.clique) + "'/></qemu:frontend></qemu:device>";
}

void checkAll(const Input& input, const std::vector<GuestDevice>& members,
              std::vector<Fault>& faults) {
  for (const GuestDevice& device : members) {
    checkDevice(input, device, faults);
  }
  if (!faults.empty()) {
    return;
  }
  for (std::size_t one = 0; one < members.size(); ++one) {
    for (std::size_t other = one + 1; other < members.size(); ++other) {
      if (members[one].clique == members[other].clique) {
        checkPair(input, members[one], members[other], faults);
      }
    }
  }
}

}  // namespace

void proposeCliques(const Input& input, Proposal& proposal) {
  // The devices with `clique:`, and whether the request can be met.
  std::vector<GuestDevice> members;
  std::ranges::copy_if(input.devices, std::back_inserter(members),
                       [](const GuestDevice& device) { return device.clique.has_value(); });
  if (members.empty()) {
    return;
  }
  if (isOlder(input.versions.libvirt, {8, 2})) {
    proposal.faults.push_back({"`clique:` needs <qemu:override>, which libvirt " +
                                   versionText(input.versions.libvirt) + " does not have",
                               "use libvirt 8.2 or newer, or remove `clique:`"});
  }
  checkAll(input, members, proposal.faults);
  // One element for each device that has none of the administrator's.
  DomainEdit edit{"gpu-clique", EditPlace::qemuOverride, {}};
  std::vector<std::string> names;
  for (const GuestDevice& device : members) {
    const std::string alias = std::string(aliasPrefix) + device.name;
    if (input.domain.cliqueAliases.contains(alias)) {
      proposal.settings.push_back({"gpu-clique", "x-nv-gpudirect-clique of " + device.name,
                                   "the domain has an override of its own for " + alias,
                                   SettingStanding::administrators});
      continue;
    }
    edit.elements.push_back(overrideElement(device));
    names.push_back(device.name + " in clique " + std::to_string(*device.clique));
  }
  if (!edit.elements.empty() && proposal.faults.empty()) {
    std::string reason =
        "the mapping requests it: NVIDIA's driver does not recognize QEMU's switches and allows "
        "peer-to-peer only within a clique";
    reason += isOlder(input.versions.qemu, {8, 1})
                  ? "; QEMU " + versionText(input.versions.qemu) +
                        " refuses it for GPUs that use configuration space at 0xc8; 8.1 accepts it"
                  : "";
    proposal.settings.push_back({"gpu-clique", "x-nv-gpudirect-clique: " + join(names, ", "),
                                 reason, SettingStanding::proposed, edit});
  }
}

}  // namespace vfpass::settings
