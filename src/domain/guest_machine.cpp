#include "vfpass/domain/guest_machine.hpp"

#include <algorithm>

#include "our_elements.hpp"
#include "pci_elements.hpp"
#include "qemu_arguments.hpp"
#include "vfpass/base/node_set.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {
namespace {

std::string entryOf(std::string_view alias) {
  return isOurAlias(alias) ? std::string(alias.substr(aliasPrefix.size())) : std::string();
}

void readDevice(pugi::xml_node device, GuestMachine& machine) {
  const auto place = guestAddressOf(device);
  if (isPciController(device)) {
    if (const auto index = controllerIndex(device)) {
      machine.controllers.push_back(readController(device, *index));
    }
    return;
  }
  const auto hostElement = hostAddressElement(device);
  const auto host = hostElement ? readPciAddress(*hostElement) : std::nullopt;
  if (host && place) {
    machine.passed.push_back({*host, *place, entryOf(aliasOf(device))});
  } else if (place) {
    machine.others.insert(*place);
  }
}

void readCells(const Document& document, GuestMachine& machine) {
  for (const auto cell : document.domain().child("cpu").child("numa").children("cell")) {
    if (const auto id = smallNumber(attributeText(cell, "id"))) {
      machine.cells.push_back({*id, {}});
    }
  }
  for (const auto node : document.domain().child("numatune").children("memnode")) {
    const auto id = smallNumber(attributeText(node, "cellid"));
    const auto nodes = parseNodeSet(attributeText(node, "nodeset"));
    for (GuestCell& cell : machine.cells) {
      if (id == cell.id && nodes) {
        cell.hostNodes.insert(nodes->begin(), nodes->end());
      }
    }
  }
}

}  // namespace

GuestMachine readGuestMachine(std::string_view xml) {
  const Document document(xml);
  GuestMachine machine;
  machine.domain = document.domain().child_value("name");
  machine.machine = attributeText(document.domain().child("os").child("type"), "machine");
  for (const auto device : document.devices()) {
    readDevice(device, machine);
  }
  std::ranges::sort(machine.controllers, [](const PciController& one, const PciController& other) {
    return one.index < other.index;
  });
  readCells(document, machine);
  addToMachine(readQemuArguments(document), machine);
  return machine;
}

GuestMachine withoutOurs(GuestMachine machine) {
  std::erase_if(machine.controllers,
                [](const PciController& each) { return !each.ourAlias.empty(); });
  std::erase_if(machine.passed, [](const PassedDevice& each) { return !each.name.empty(); });
  return machine;
}

}  // namespace vfpass::domain
