#include <algorithm>
#include <ostream>
#include <set>

#include "text_values.hpp"
#include "topology_words.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

constexpr std::size_t maxNamedAlike = 3;

std::string nodeText(const TopologyFunction& function) {
  return function.numaNode < 0 ? notObservable : std::to_string(function.numaNode);
}

void writeGpuRows(std::ostream& out, const TopologyWords& words, const Style& style,
                  std::set<topology::Distance>& met) {
  std::vector<std::string> header{"GPU", "ADDRESS", "NUMA"};
  for (const std::size_t pf : words.pfs()) {
    header.push_back(printable(words.name(pf)));
  }
  Table table(header);
  for (const std::size_t gpu : words.gpus()) {
    std::vector<Cell> row{{words.name(gpu)},
                          {toString(words.function(gpu).address)},
                          {nodeText(words.function(gpu))}};
    for (const std::size_t pf : words.pfs()) {
      const auto distance = topology::distance(words.topology(), gpu, pf);
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
    const TopologyFunction& pf = words.function(number);
    const RdmaDevice none;
    const RdmaDevice& rdma = pf.rdma.empty() ? none : pf.rdma.front();
    table.add({{words.name(number)},
               {toString(pf.address)},
               {textOrNothing(pf.netdevs.empty() ? "" : pf.netdevs.front().name)},
               {nodeText(pf)},
               {portText(pf), topology::isUsable(pf) ? Tint::none : Tint::bad},
               {rdma.ports.empty() ? nothing : std::string(toString(rdma.ports.front().linkLayer))},
               {pcieText(pf), isDegraded(pf) ? Tint::warning : Tint::none},
               {vfText(words, number)},
               {textOrNothing(rdma.firmware)},
               {textOrNothing(pf.serial)}});
  }
  table.write(out, style);
}

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
}

}  // namespace vfpass::report
