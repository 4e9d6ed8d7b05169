#include "vfpass/host/vf_statistics.hpp"

#include "sriov/vf_port.hpp"
#include "sysfs/pci_function.hpp"

namespace vfpass::host {
namespace {

VfStatistics readFiles(const Root& root, const PciAddress& pf, unsigned index) {
  const std::string folder = functionPath(pf) + "/sriov/" + std::to_string(index) + "/stats/";
  VfStatistics found;
  for (const std::string_view name : vfStatisticNames) {
    if (const auto value = root.readNumber(folder + std::string(name))) {
      found.emplace(name, *value);
    }
  }
  return found;
}

}  // namespace

std::map<unsigned, VfStatistics> readVfStatistics(const Root& root, const PhysicalFunction& pf,
                                                  std::chrono::milliseconds netlinkDeadline) {
  std::map<unsigned, VfStatistics> table;
  for (const VirtualFunction& vf : pf.vfs) {
    if (auto found = readFiles(root, pf.address, vf.index); !found.empty()) {
      table.emplace(vf.index, std::move(found));
    }
  }
  if (!table.empty() || !root.isLive() || pf.uplink().index <= 0 || pf.netdevDetached ||
      pf.vfs.empty()) {
    return table;
  }
  NetlinkPort port(pf.uplink().index, false, pf.netdev() + " (" + toString(pf.address) + ")",
                   netlinkDeadline);
  return countedStatistics(port.readStatistics(), pf.driver);
}

}  // namespace vfpass::host
