#include <algorithm>
#include <ostream>
#include <set>

#include "text_values.hpp"
#include "topology_words.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::report {
namespace {

constexpr std::size_t maxNamedAlike = 3;

std::string nodeText(const Device& function) {
  return function.numaNode < 0 ? notObservable : std::to_string(function.numaNode);
}

Cell pcieCell(const TopologyWords& words, std::size_t device) {
  const auto link = topology::linkAbove(words.topology(), device);
  return {pcieText(words.topology(), link), tintOf(link)};
}

void writeGpuRows(std::ostream& out, const TopologyWords& words, const Style& style,
                  std::set<topology::Distance>& met) {
  std::vector<std::string> header{"GPU", "ADDRESS", "NUMA", "PCIE"};
  for (const std::size_t pf : words.pfs()) {
    header.push_back(printable(words.name(pf)));
  }
  Table table(header);
  for (const std::size_t gpu : words.gpus()) {
    std::vector<Cell> row{{words.name(gpu)},
                          {toString(words.function(gpu).address)},
                          {nodeText(words.function(gpu))},
                          pcieCell(words, gpu)};
    for (const std::size_t pf : words.pfs()) {
      const auto distance = topology::dataDistance(words.topology(), gpu, pf);
      met.insert(distance);
      row.push_back({std::string(toString(distance)), tintOf(distance)});
    }
    table.add(std::move(row));
  }
  table.write(out, style);
}

void writeLegend(std::ostream& out, const std::set<topology::Distance>& met, const Style& style) {
  for (const auto distance : met) {
    std::string name(toString(distance));
    name.resize(5, ' ');
    out << tinted(name, tintOf(distance), style) << explain(distance) << '\n';
  }
}

std::string alikeText(const TopologyWords& words, const topology::Rail& rail) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(maxNamedAlike, rail.alike.size()); ++i) {
    names.push_back(words.name(rail.alike[i]));
  }
  if (rail.alike.size() > maxNamedAlike) {
    names.push_back("and " + std::to_string(rail.alike.size() - maxNamedAlike) + " more");
  }
  return textOrNothing(join(names, ", "));
}

void writeRails(std::ostream& out, const TopologyWords& words, const Style& style) {
  Table table({"RAIL", "GPU", "PF", "DISTANCE", "PORT", "EQUALLY NEAR"});
  for (std::size_t i = 0; i < words.rails().size(); ++i) {
    const topology::Rail& rail = words.rails()[i];
    if (!rail.pf) {
      table.add({{std::to_string(i)}, {words.name(rail.gpu)}, {nothing, Tint::bad}});
      continue;
    }
    table.add({{std::to_string(i)},
               {words.name(rail.gpu)},
               {words.name(*rail.pf)},
               {std::string(toString(rail.distance)), tintOf(rail.distance)},
               {portText(words.function(*rail.pf)),
                topology::isUsable(words.function(*rail.pf)) ? Tint::none : Tint::bad},
               {alikeText(words, rail)}});
  }
  table.write(out, style);
}

std::string vfText(const TopologyWords& words, std::size_t pf) {
  std::size_t leased = 0;
  for (const std::size_t vf : words.vfsOf(pf)) {
    leased += words.leaseOf(vf) != nullptr ? 1 : 0;
  }
  return std::to_string(words.function(pf).vfCount) + "/" +
         std::to_string(words.function(pf).totalVfs) +
         (leased == 0 ? "" : ", " + std::to_string(leased) + " leased");
}

void writePfRows(std::ostream& out, const TopologyWords& words, const Style& style) {
  Table table(
      {"PF", "ADDRESS", "NETDEV", "NUMA", "PORT", "LINK", "PCIE", "VFS", "FIRMWARE", "SERIAL"});
  for (const std::size_t number : words.pfs()) {
    const Device& pf = words.function(number);
    const RdmaPort* port = pf.rdmaPort();
    table.add({{words.name(number)},
               {toString(pf.address)},
               {textOrNothing(pf.netdev())},
               {nodeText(pf)},
               {portText(pf), topology::isUsable(pf) ? Tint::none : Tint::bad},
               {port == nullptr ? nothing : std::string(toString(port->linkLayer))},
               pcieCell(words, number),
               {vfText(words, number)},
               {textOrNothing(pf.rdma.empty() ? "" : pf.rdma.front().firmware)},
               {textOrNothing(pf.serial)}});
  }
  table.write(out, style);
}

// The functions that look like NICs, but are not.
void writeNvlinkManagers(std::ostream& out, const TopologyWords& words) {
  std::vector<std::string> names;
  for (const std::size_t number : topology::nvlinkBoard(words.topology()).managers) {
    const std::string address = toString(words.function(number).address);
    const std::string name = printable(words.name(number));
    names.push_back(name == address ? address : name + " (" + address + ")");
  }
  if (!names.empty()) {
    out << "\nNVLink management of the GPU board, no NICs: " << join(names, ", ") << '\n';
  }
}

constexpr std::size_t maxNamedVfs = 8;

class TreeWriter {
 public:
  TreeWriter(std::ostream& out, const TopologyWords& words, const Style& style)
      : out_(out), words_(words), style_(style) {}

  // Devices first, then the branches below.
  void write(const topology::Branch& branch, const std::string& indent) {
    const std::size_t count = branch.devices.size() + branch.branches.size();
    std::size_t at = 0;
    for (const std::size_t device : branch.devices) {
      const bool last = ++at == count;
      out_ << indent << (last ? "└─ " : "├─ ") << deviceLine(device) << '\n';
      writeVfs(device, indent + (last ? "   " : "│  "));
    }
    for (const topology::Branch& inner : branch.branches) {
      const bool last = ++at == count;
      out_ << indent << (last ? "└─ " : "├─ ") << switchLine(*inner.port) << '\n';
      write(inner, indent + (last ? "   " : "│  "));
    }
  }

 private:
  [[nodiscard]] std::string switchLine(std::size_t port) const {
    const Device& function = words_.function(port);
    const bool isSwitch = function.role == FunctionRole::upstreamPort;
    return std::string(isSwitch ? "switch " : "bridge ") + toString(function.address) + "  " +
           linkText(port);
  }

  [[nodiscard]] std::string linkText(std::size_t function) const {
    const Cell cell = pcieCell(words_, function);
    return tinted(cell.text, cell.tint, style_);
  }

  [[nodiscard]] std::string deviceLine(std::size_t device) const {
    const Device& function = words_.function(device);
    std::string line = tinted(words_.name(device), Tint::heading, style_);
    if (words_.name(device) != toString(function.address)) {
      line += "  " + toString(function.address);
    }
    line += function.role == FunctionRole::nvswitch           ? "  NVSwitch"
            : function.role == FunctionRole::nvlinkManagement ? "  NVLink management"
                                                              : "";
    line += "  " + linkText(device);
    if (function.role == FunctionRole::nic) {
      line += "  " + printable(portText(function));
    }
    line += function.model.empty() ? "" : "  " + printable(function.model);
    if (const Lease* lease = words_.leaseOf(device)) {
      line += "  " + tinted("leased to " + printable(lease->domainName), Tint::good, style_);
    } else if (!function.vfioUser.empty()) {
      line += "  held by " + printable(function.vfioUser);
    } else if (function.role == FunctionRole::gpu && !function.driver.empty()) {
      line += "  on " + printable(function.driver);
    }
    return line;
  }

  void writeVfs(std::size_t pf, const std::string& indent) {
    const auto& vfs = words_.vfsOf(pf);
    if (vfs.empty()) {
      return;
    }
    std::vector<std::size_t> leased;
    std::ranges::copy_if(vfs, std::back_inserter(leased),
                         [this](std::size_t vf) { return words_.leaseOf(vf) != nullptr; });
    out_ << indent << "└─ " << vfs.size() << " of " << words_.function(pf).totalVfs << " VFs";
    for (std::size_t i = 0; i < std::min(maxNamedVfs, leased.size()); ++i) {
      const Device& vf = words_.function(leased[i]);
      out_ << (i == 0 ? ": " : ", ") << (vf.vfIndex ? std::to_string(*vf.vfIndex) : notObservable)
           << ' '
           << tinted("leased to " + printable(words_.leaseOf(leased[i])->domainName), Tint::good,
                     style_);
    }
    if (leased.size() > maxNamedVfs) {
      out_ << ", and " << leased.size() - maxNamedVfs << " more";
    }
    out_ << '\n';
  }

  std::ostream& out_;
  const TopologyWords& words_;
  const Style& style_;
};

}  // namespace

void writeTopologyMatrix(std::ostream& out, const TopologyReport& report, const Style& style) {
  const TopologyWords words(report);
  if (words.gpus().empty()) {
    out << "no GPU\n";
  } else if (words.pfs().empty()) {
    out << words.gpus().size() << " GPUs, but no NIC with SR-IOV or RDMA\n";
  } else {
    std::set<topology::Distance> met;
    writeGpuRows(out, words, style, met);
    out << '\n';
    writeLegend(out, met, style);
    out << '\n';
    writeRails(out, words, style);
  }
  if (!words.pfs().empty()) {
    out << '\n';
    writePfRows(out, words, style);
  }
  writeNvlinkManagers(out, words);
}

void writeDeviceMatrix(std::ostream& out, const std::string& title,
                       const topology::DeviceMatrix& matrix, const Style& style) {
  if (matrix.names.size() < 2) {
    return;
  }
  std::vector<std::string> header{""};
  for (const std::string& name : matrix.names) {
    header.push_back(printable(name));
  }
  Table table(header);
  for (std::size_t one = 0; one < matrix.names.size(); ++one) {
    std::vector<Cell> row{{printable(matrix.names[one])}};
    for (const auto& distance : matrix.distances[one]) {
      row.push_back(distance ? Cell{std::string(toString(*distance)), tintOf(*distance)}
                             : Cell{notObservable});
    }
    table.add(std::move(row));
  }
  out << tinted(printable(title), Tint::heading, style) << '\n';
  table.write(out, style);
}

void writeTopologyTree(std::ostream& out, const TopologyReport& report, const Style& style) {
  const TopologyWords words(report);
  TreeWriter writer(out, words, style);
  const auto branches = words.branches();
  std::size_t shown = 0;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (branches[i].devices.empty() && branches[i].branches.empty()) {
      continue;
    }
    const HostBridge& bridge = words.topology().hostBridges[i];
    ++shown;
    out << tinted(bridge.name, Tint::heading, style);
    if (bridge.numaNode >= 0) {
      out << "  NUMA node " << bridge.numaNode;
    }
    out << '\n';
    writer.write(branches[i], "");
  }
  if (shown == 0) {
    out << "no GPU and no NIC\n";
  }
}

}  // namespace vfpass::report
