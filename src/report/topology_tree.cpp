#include <algorithm>
#include <ostream>

#include "text_values.hpp"
#include "topology_words.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

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
    const TopologyFunction& function = words_.function(port);
    const bool isSwitch = function.role == FunctionRole::upstreamPort;
    return std::string(isSwitch ? "switch " : "bridge ") + toString(function.address) + "  " +
           linkText(function);
  }

  [[nodiscard]] std::string linkText(const TopologyFunction& function) const {
    return tinted(pcieText(function), isDegraded(function) ? Tint::warning : Tint::none, style_);
  }

  [[nodiscard]] std::string deviceLine(std::size_t device) const {
    const TopologyFunction& function = words_.function(device);
    std::string line = tinted(words_.name(device), Tint::heading, style_);
    if (words_.name(device) != toString(function.address)) {
      line += "  " + toString(function.address);
    }
    line += function.role == FunctionRole::nvswitch ? "  NVSwitch" : "";
    line += "  " + linkText(function);
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
    std::copy_if(vfs.begin(), vfs.end(), std::back_inserter(leased),
                 [this](std::size_t vf) { return words_.leaseOf(vf) != nullptr; });
    out_ << indent << "└─ " << vfs.size() << " of " << words_.function(pf).totalVfs << " VFs";
    for (std::size_t i = 0; i < std::min(maxNamedVfs, leased.size()); ++i) {
      const TopologyFunction& vf = words_.function(leased[i]);
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
