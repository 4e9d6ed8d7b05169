#include <array>
#include <cstdint>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/inventory_report.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

std::string pciId(std::uint16_t id) {
  const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(id >> 8U),
                                          static_cast<std::uint8_t>(id & 0xffU)};
  return hexBytes(bytes, "");
}

std::string linkLayerText(LinkLayer layer) {
  return layer == LinkLayer::unknown ? notObservable : std::string(toString(layer));
}

std::string vfCountText(const PhysicalFunction& pf) {
  return std::to_string(pf.vfs.size()) + "/" + std::to_string(pf.totalVfs);
}

std::vector<Cell> pfRow(const PhysicalFunction& pf) {
  return {{toString(pf.address)},
          {textOrNothing(pf.netdev)},
          {textOrNothing(pf.rdmaDevice)},
          {textOrNothing(pf.driver)},
          {linkLayerText(pf.linkLayer)},
          {vfCountText(pf)},
          // The kernel reports -1 if the firmware does not assign a node.
          {pf.numaNode < 0 ? notObservable : std::to_string(pf.numaNode)},
          {pf.model.empty() ? pciId(pf.vendor) + ":" + pciId(pf.device) : pf.model},
          {textOrNothing(pf.serial)}};
}

Json pfJson(const PhysicalFunction& pf) {
  return {
      {"address", toString(pf.address)},
      {"path", pf.path},
      {"vendor", pciId(pf.vendor)},
      {"device", pciId(pf.device)},
      {"model", textOrNull(pf.model)},
      {"serial", textOrNull(pf.serial)},
      {"driver", textOrNull(pf.driver)},
      {"netdev", textOrNull(pf.netdev)},
      {"netdev_up", pf.netdev.empty() ? Json() : Json(pf.netdevUp)},
      {"rdma", textOrNull(pf.rdmaDevice)},
      {"link_layer", pf.linkLayer == LinkLayer::unknown ? Json() : Json(toString(pf.linkLayer))},
      {"numa_node", pf.numaNode < 0 ? Json() : Json(pf.numaNode)},
      {"sriov_capable", pf.sriovCapable},
      {"vfs", pf.vfs.size()},
      {"total_vfs", pf.totalVfs},
      {"probes_vfs", pf.probesVfs}};
}

void writePfsJson(std::ostream& out, const Inventory& inventory) {
  Json document = newDocument();
  document["iommu_present"] = inventory.iommuPresent;
  document["unsafe_interrupts"] = inventory.unsafeInterrupts;
  document["pfs"] = Json::array();
  for (const auto& pf : inventory.pfs) {
    document["pfs"].push_back(pfJson(pf));
  }
  writeDocument(out, document);
}

}  // namespace

void writePfs(std::ostream& out, const Inventory& inventory, const Style& style) {
  if (style.json) {
    writePfsJson(out, inventory);
    return;
  }
  if (inventory.pfs.empty()) {
    out << "no SR-IOV capable NIC with a driver\n";
    return;
  }
  Table table({"PF", "NETDEV", "RDMA", "DRIVER", "LINK", "VFS", "NUMA", "MODEL", "SERIAL"});
  for (const auto& pf : inventory.pfs) {
    table.add(pfRow(pf));
  }
  table.write(out, style);
}

}  // namespace vfpass::report
