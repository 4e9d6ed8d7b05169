#include "vfpass/domain/domain_xml.hpp"

#include <pugixml.hpp>

#include "pci_elements.hpp"
#include "vfpass/error.hpp"

namespace vfpass::domain {

NetworkPool readNetworkPool(std::string_view networkXml) {
  pugi::xml_document document;
  const auto result = document.load_buffer(networkXml.data(), networkXml.size());
  const pugi::xml_node network = document.child("network");
  if (!result || !network) {
    throw Error("cannot parse libvirt's network XML", {}, ExitCode::badInput);
  }
  NetworkPool pool{network.child_value("name"), {}, {}};
  const pugi::xml_node forward = network.child("forward");
  for (const auto pf : forward.children("pf")) {
    pool.pfNetdevs.emplace_back(pf.attribute("dev").value());
  }
  if (std::string_view(forward.attribute("mode").value()) == "hostdev") {
    for (const auto address : forward.children("address")) {
      if (const auto device = readPciAddress(address)) {
        pool.devices.push_back(*device);
      }
    }
  }
  return pool;
}

}  // namespace vfpass::domain
