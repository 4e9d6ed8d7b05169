#include "topology_words.hpp"

#include <algorithm>

#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

constexpr std::size_t maxNameLength = 24;  // IFNAMSIZ is 16; RDMA devices can have longer names

std::string nicName(const Device& nic) {
  std::string name = !nic.rdma.empty()      ? nic.rdmaDevice()
                     : !nic.netdevs.empty() ? nic.netdev()
                                            : toString(nic.address);
  return name.size() > maxNameLength ? name.substr(0, maxNameLength - 1) + "~" : name;
}

}  // namespace

TopologyWords::TopologyWords(const TopologyReport& report)
    : report_(report),
      gpus_(topology::gpus(report.topology)),
      pfs_(topology::pfs(report.topology)),
      rails_(topology::rails(report.topology)) {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    names_[gpus_[i]] = "GPU" + std::to_string(i);
  }
  for (std::size_t i = 0; i < topology().functions.size(); ++i) {
    const Device& candidate = function(i);
    if (candidate.physicalFunction) {
      vfs_[*candidate.physicalFunction].push_back(i);
    }
  }
  for (auto& [pf, vfs] : vfs_) {
    std::ranges::sort(vfs, [this](std::size_t one, std::size_t other) {
      return function(one).vfIndex < function(other).vfIndex;
    });
  }
  for (const Lease& lease : report.leases) {
    leases_[lease.device] = &lease;
  }
}

std::vector<topology::Branch> TopologyWords::branches() const {
  return topology::branchesOf(topology(), {[](const Device& function) {
                                const bool shown = function.role == FunctionRole::gpu ||
                                                   function.role == FunctionRole::nic ||
                                                   function.role == FunctionRole::nvswitch ||
                                                   function.role == FunctionRole::nvlinkManagement;
                                return shown && !function.physicalFunction;
                              }});
}

std::string TopologyWords::name(std::size_t number) const {
  if (const std::string& entry = function(number).entry; !entry.empty()) {
    return entry;
  }
  if (const auto found = names_.find(number); found != names_.end()) {
    return found->second;
  }
  const Device& named = function(number);
  const bool isNic =
      named.role == FunctionRole::nic || named.role == FunctionRole::nvlinkManagement;
  return isNic ? nicName(named) : toString(named.address);
}

const Lease* TopologyWords::leaseOf(std::size_t number) const {
  const auto found = leases_.find(function(number).address);
  return found == leases_.end() ? nullptr : found->second;
}

const std::vector<std::size_t>& TopologyWords::vfsOf(std::size_t pf) const {
  static const std::vector<std::size_t> none;
  const auto found = vfs_.find(function(pf).address);
  return found == vfs_.end() ? none : found->second;
}

std::vector<std::string> TopologyWords::tenants() const {
  std::vector<std::string> names;
  for (const Lease& lease : report_.leases) {
    names.push_back(lease.domainName);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string pcieText(const PcieLink& link) {
  const std::string text = topology::linkText(link);
  return text.empty() ? notObservable : text;
}

std::string pcieText(const Topology& topology, const topology::Link& link) {
  using topology::LinkState;
  const std::string now = pcieText(link.state == LinkState::unknown ? link.possible : link.now);
  switch (link.state) {
    case LinkState::degraded:
      return now + " of " + pcieText(link.possible);
    case LinkState::idle:
      return now + " of " + pcieText(link.possible) + " (if idle)";
    case LinkState::synthetic:
      return pcieText(link.possible) + " (virtual port)";
    case LinkState::full:
      return topology::isLimitedBySlot(topology, link)
                 ? now + " (" + pcieText(topology.functions[link.function].best) + " card)"
                 : now;
    case LinkState::unknown:
      break;
  }
  return now;
}

Tint tintOf(const topology::Link& link) {
  return link.state == topology::LinkState::degraded ? Tint::warning : Tint::none;
}

std::string rateText(unsigned megabits) {
  if (megabits == 0) {
    return {};
  }
  const std::string half = megabits % 1000 == 0 ? "" : "." + std::to_string(megabits % 1000 / 100);
  return std::to_string(megabits / 1000) + half + " Gb/s";
}

std::string portText(const Device& pf) {
  if (const RdmaPort* port = pf.rdmaPort()) {
    const std::string rate = rateText(port->rate);
    return textOrNothing(toLower(port->state)) + (rate.empty() ? "" : " " + rate);
  }
  return pf.netdevs.empty() ? nothing : pf.uplink().up ? "up" : "down";
}

std::string hexText(unsigned value, int digits) {
  std::string text;
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[value >> static_cast<unsigned>(shift) & 0xfU];
  }
  return text;
}

Tint tintOf(topology::Distance distance) {
  switch (distance) {
    case topology::Distance::self:
      return Tint::muted;
    case topology::Distance::pix:
    case topology::Distance::pxb:
      return Tint::good;
    case topology::Distance::phb:
    case topology::Distance::node:
      return Tint::warning;
    case topology::Distance::sys:
      break;
  }
  return Tint::bad;
}

std::string cpuText(const std::string& mask) {
  std::string digits;
  std::ranges::copy_if(mask, std::back_inserter(digits), [](char c) { return c != ','; });
  const auto isSet = [&](std::size_t cpu) {
    if (cpu / 4 >= digits.size()) {
      return false;
    }
    const auto digit = parseNumber(digits.substr(digits.size() - 1 - cpu / 4, 1), 16);
    return (digit.value_or(0) >> cpu % 4 & 1U) != 0;
  };
  std::string text;
  for (std::size_t cpu = 0; cpu < digits.size() * 4; ++cpu) {
    if (!isSet(cpu)) {
      continue;
    }
    std::size_t last = cpu;
    while (isSet(last + 1)) {
      ++last;
    }
    text += (text.empty() ? "" : ",") + std::to_string(cpu) +
            (last == cpu ? "" : "-" + std::to_string(last));
    cpu = last;
  }
  return text;
}

std::string shortModel(const Device& function) {
  const auto open = function.model.rfind('[');
  const auto close = function.model.rfind(']');
  return open == std::string::npos || close == std::string::npos || close < open
             ? function.model
             : function.model.substr(open + 1, close - open - 1);
}

}  // namespace vfpass::report
