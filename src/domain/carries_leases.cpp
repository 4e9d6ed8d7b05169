#include <algorithm>

#include "domain_edits.hpp"
#include "guest_ports.hpp"
#include "our_elements.hpp"
#include "pci_attributes.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/seal.hpp"

namespace vfpass::domain {
namespace {

// Sorted, so that the order of leases does not matter.
std::vector<Lease> comparable(const std::vector<Lease>& leases) {
  std::vector<Lease> result;
  for (const auto& lease : leases) {
    result.push_back(termsOf(lease));
  }
  std::sort(result.begin(), result.end());
  return result;
}

// libvirt omits managed='no' on an <interface> but writes it on a <hostdev>.
bool sameBinding(pugi::xml_node device, const Lease& lease) {
  return (attributeText(device, "managed") == "yes") == lease.managed;
}

bool sameTeaming(pugi::xml_node device, const Lease& lease) {
  const auto teaming = device.child("teaming");
  if (!isVf(lease) || !vfOf(lease).teamingWith) {
    return !teaming;
  }
  return attributeText(teaming, "type") == "transient" &&
         attributeText(teaming, "persistent") == standbyAlias(*vfOf(lease).teamingWith);
}

// libvirt generates a MAC address if the lease sets none.
bool sameEthernet(pugi::xml_node device, const Lease& lease) {
  const auto mac = parseMacAddress(attributeText(device.child("mac"), "address"));
  const auto tag = parseNumber(attributeText(device.child("vlan").child("tag"), "id"));
  const VfSettings& settings = vfOf(lease).settings;
  return (!settings.mac || mac == settings.mac) &&
         tag.value_or(0) == settings.vlan.value_or(Vlan{}).id;
}

bool isDeviceOf(pugi::xml_node device, const Lease& lease) {
  const auto host = hostAddressElement(device);
  const std::string_view element = isInterface(lease) ? "interface" : "hostdev";
  return device.name() == element && aliasOf(device) == deviceAlias(lease) && host &&
         readPciAddress(*host) == lease.vf && guestAddressOf(device) == lease.guest.address &&
         sameBinding(device, lease) && sameTeaming(device, lease) &&
         (!isInterface(lease) || sameEthernet(device, lease));
}

}  // namespace

bool carriesLeases(std::string_view xml, const std::vector<Lease>& leases, const SealKey& key) {
  const auto parsed = parseDomain(xml);
  if (parsed.managed != !leases.empty() || !sealFault(parsed, key).empty() ||
      comparable(parsed.leases) != comparable(leases)) {
    return false;
  }
  const Document document(xml);
  const auto devices = ourDevices(document);
  std::size_t expected = 0;
  for (const auto& lease : leases) {
    const auto has = [&](auto matches) {
      ++expected;
      return std::count_if(devices.begin(), devices.end(),
                           [&](pugi::xml_node device) { return matches(device, lease); }) == 1;
    };
    if (!has(isDeviceOf) || (lease.guest.port && !has(isPortOf))) {
      return false;
    }
  }
  for (const GuestController& controller : controllersOf(leases)) {
    ++expected;
    if (std::count_if(devices.begin(), devices.end(), [&controller](pugi::xml_node device) {
          return isController(device, controller);
        }) != 1) {
      return false;
    }
  }
  if (!carriesEdits(document, editsOf(leases))) {
    return false;
  }
  return devices.size() == expected;  // further ones are left-over devices of ours
}

}  // namespace vfpass::domain
