#include "vfpass/domain/network_xml.hpp"

#include <pugixml.hpp>

#include "pci_attributes.hpp"
#include "vfpass/error.hpp"

namespace vfpass::domain {

std::vector<PciAddress> poolDevices(std::string_view networkXml) {
  pugi::xml_document document;
  const auto result = document.load_buffer(networkXml.data(), networkXml.size());
  const pugi::xml_node network = document.child("network");
  if (!result || !network) {
    throw Error("libvirt's network XML cannot be parsed", {}, ExitCode::badInput);
  }
  std::vector<PciAddress> devices;
  const pugi::xml_node forward = network.child("forward");
  if (std::string_view(forward.attribute("mode").value()) != "hostdev") {
    return devices;
  }
  for (const auto address : forward.children("address")) {
    if (const auto device = readPciAddress(address)) {
      devices.push_back(*device);
    }
  }
  return devices;
}

}  // namespace vfpass::domain
