// Replaces NetlinkPort and readVfTables (src/host/sriov/vf_port.cpp), link settings
// (src/host/netlink/link_settings.cpp) and SoftRoCE (soft_roce_links.cpp, rdma_holders.cpp) with
// requests to the world.
#include <cerrno>
#include <cstdlib>

#include "holders/holder_kinds.hpp"
#include "sriov/vf_port.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/link_settings.hpp"
#include "vfpass/host/soft_roce_links.hpp"
#include "worker/world_socket.hpp"

namespace vfpass::host {
namespace {

using crash::ask;
using std::chrono::milliseconds;

int number(const std::string& text) { return std::atoi(text.c_str()); }

// Throws what the real code throws for the error that begins a reply.
void requireSuccess(const crash::Message& reply, const std::string& what) {
  const int error = number(reply.at(0));
  if (error == ETIMEDOUT) {
    throw TimeoutError(what + ": no reply", "wait");
  }
  if (error != 0) {
    throw Error(what + ": " + errnoText(error));
  }
}

VfTable readTable(int netdev, const std::string& name) {
  const auto reply = ask({"table", std::to_string(netdev)});
  requireSuccess(reply, name + ": reading VF attributes");
  VfTable table;
  for (std::size_t at = 1; at + 1 < reply.size(); at += 2) {
    table[static_cast<unsigned>(number(reply[at]))] = crash::valueOf<VfSettings>(reply[at + 1]);
  }
  return table;
}

std::vector<RdmaLink> allRdmaLinks() {
  const auto reply = ask({"links"});
  std::vector<RdmaLink> links;
  for (std::size_t at = 0; at + 2 < reply.size(); at += 3) {
    links.push_back(
        {reply[at], true, reply[at + 1], static_cast<std::uint32_t>(number(reply[at + 2]))});
  }
  return links;
}

}  // namespace

NetlinkPort::NetlinkPort(int interfaceIndex, bool infiniband, std::string name,
                         milliseconds deadline, std::optional<PciAddress> pf)
    : interfaceIndex_(interfaceIndex),
      infiniband_(infiniband),
      name_(std::move(name)),
      deadline_(deadline),
      pf_(pf) {}

VfTable NetlinkPort::read() { return readTable(interfaceIndex_, name_); }
VfTrafficTable NetlinkPort::readTraffic() { return {}; }
VfStatisticsTable NetlinkPort::readStatistics() { return {}; }

Acknowledgement NetlinkPort::set(const std::vector<VfRequest>& requests) {
  crash::Message message{"set", std::to_string(interfaceIndex_)};
  for (const auto& request : requests) {
    message.push_back(std::to_string(request.index));
    message.push_back(crash::bytesOf(request.settings));
  }
  const int error = number(ask(message).at(0));
  if (error == ETIMEDOUT) {
    throw TimeoutError(name_ + ": setting VF attributes: no reply", "wait");
  }
  if (error == ECHILD) {
    throw Error(name_ + ": setting VF attributes: the kernel sent no acknowledgement");
  }
  return {error, error == 0 ? "" : "injected"};
}

std::vector<VfAnswer> readVfTables(const std::vector<VfNetdev>& netdevs,
                                   milliseconds /*deadline*/) {
  std::vector<VfAnswer> answers;
  for (const auto& netdev : netdevs) {
    answers.push_back({readTable(netdev.index, netdev.name), false});
  }
  return answers;
}

bool isNetdevDetached(const NetdevHandle& /*netdev*/, milliseconds /*deadline*/) { return false; }

LinkSettings readLink(const NetdevHandle& netdev, milliseconds /*deadline*/) {
  const auto reply = ask({"link", std::to_string(netdev.index)});
  return {static_cast<unsigned>(number(reply.at(0))), reply.at(1) == "1"};
}

void setMtu(const NetdevHandle& netdev, unsigned mtu, milliseconds /*deadline*/) {
  requireSuccess(ask({"mtu", std::to_string(netdev.index), std::to_string(mtu)}), netdev.name);
}

void setUp(const NetdevHandle& netdev, bool up, milliseconds /*deadline*/) {
  requireSuccess(ask({"up", std::to_string(netdev.index), up ? "1" : "0"}), netdev.name);
}

std::optional<EswitchMode> readEswitchMode(const PciAddress& pf, milliseconds /*deadline*/) {
  return ask({"mode", toString(pf)}).at(0) == "1" ? EswitchMode::switchdev : EswitchMode::legacy;
}

int eswitchRefusal(const PciAddress& /*pf*/, milliseconds /*deadline*/) { return 0; }

void setEswitchMode(const PciAddress& pf, EswitchMode mode, milliseconds /*deadline*/) {
  requireSuccess(ask({"set mode", toString(pf), mode == EswitchMode::switchdev ? "1" : "0"}),
                 toString(pf));
}

std::vector<RdmaLink> readRdmaLinks(const Root& /*root*/) { return allRdmaLinks(); }
std::vector<RdmaLink> readRdmaLinks(const Root& /*root*/, milliseconds /*deadline*/) {
  return allRdmaLinks();
}

std::string softRoceFault(const Root& /*root*/, const std::string& /*netdev*/) { return {}; }

std::uint32_t addSoftRoceLink(const Root& /*root*/, const std::string& name,
                              const std::string& netdev, milliseconds /*deadline*/) {
  const auto reply = ask({"add link", name, netdev});
  requireSuccess(reply, "SoftRoCE link " + name);
  return static_cast<std::uint32_t>(number(reply.at(1)));
}

void removeSoftRoceLink(const Root& /*root*/, const RdmaLink& link, milliseconds /*deadline*/) {
  requireSuccess(ask({"remove link", std::to_string(link.number.value_or(0))}),
                 "SoftRoCE link " + link.name);
}

std::vector<RdmaUse> readRdmaUse(const Root& /*root*/, const std::vector<std::uint32_t>& numbers,
                                 milliseconds /*deadline*/) {
  return std::vector<RdmaUse>(numbers.size());
}

std::vector<std::string> rdmaUsers(const Root& /*root*/, std::uint32_t /*number*/,
                                   milliseconds /*deadline*/) {
  return {};
}

}  // namespace vfpass::host
