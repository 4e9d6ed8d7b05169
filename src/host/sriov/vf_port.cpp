#include "sriov/vf_port.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "netlink/netlink_batch.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/pci_capability.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

constexpr const char* readingAttributes = "reading VF attributes";

// Some kernels fail instead of letting the VF list wrap: nothing is observable then. Nullopt: the
// reply is another error, or invalid.
std::optional<VfTable> tableOf(const std::string& reply, int interfaceIndex, bool infiniband) {
  if (auto table = parseLinkReply(reply, interfaceIndex, infiniband)) {
    return table;
  }
  const auto refusal = parseAcknowledgement(reply);
  return refusal && refusal->error == EMSGSIZE ? std::optional(VfTable{}) : std::nullopt;
}

}  // namespace

NetlinkPort::NetlinkPort(int interfaceIndex, bool infiniband, std::string name,
                         std::chrono::milliseconds deadline, std::optional<PciAddress> pf)
    : interfaceIndex_(interfaceIndex),
      infiniband_(infiniband),
      name_(std::move(name)),
      deadline_(deadline),
      pf_(pf) {}

std::string NetlinkPort::query(const std::string& request) {
  return exchangeNetlink(NETLINK_ROUTE, request, reading(), deadline_);
}

ExchangePurpose NetlinkPort::reading() const {
  return {name_, readingAttributes, std::nullopt, interfaceIndex_};
}

VfTable NetlinkPort::read() {
  const std::string reply = query(linkQuery(interfaceIndex_, ++sequence_));
  if (auto table = tableOf(reply, interfaceIndex_, infiniband_)) {
    return *table;
  }
  throwNoData(reading(), reply);
}

VfTrafficTable NetlinkPort::readTraffic() {
  const std::string reply = query(trafficQuery(interfaceIndex_, ++sequence_));
  return parseTrafficReply(reply, interfaceIndex_).value_or(VfTrafficTable{});
}

VfStatisticsTable NetlinkPort::readStatistics() {
  const std::string reply = query(trafficQuery(interfaceIndex_, ++sequence_));
  return parseStatisticsReply(reply, interfaceIndex_).value_or(VfStatisticsTable{});
}

Acknowledgement NetlinkPort::set(const std::vector<VfRequest>& requests) {
  const auto messages = linkChanges(interfaceIndex_, sequence_ + 1, requests);
  sequence_ += static_cast<std::uint32_t>(messages.size());
  for (const std::string& message : messages) {
    const Acknowledgement answer = sendChange(
        NETLINK_ROUTE, message, {name_, "setting VF attributes", pf_, interfaceIndex_}, deadline_);
    if (answer.error != 0) {
      return answer;
    }
  }
  return {};
}

std::vector<VfAnswer> readVfTables(const std::vector<VfNetdev>& netdevs,
                                   std::chrono::milliseconds deadline) {
  std::vector<NetlinkQuery> queries;
  for (const VfNetdev& netdev : netdevs) {
    queries.push_back({0, NETLINK_ROUTE, linkQuery(netdev.index, 1), false, netdev.index});
  }
  const auto limit = deadline * static_cast<int>(std::max<std::size_t>(netdevs.size(), 1));
  const auto answers = runNetlinkBatch({NetlinkPlace{}}, queries, -1, limit);
  std::vector<VfAnswer> found;
  for (std::size_t i = 0; i < netdevs.size(); ++i) {
    if (answers[i].error == ETIMEDOUT) {
      throwNoReply({netdevs[i].name, readingAttributes}, limit);
    }
    found.push_back({answers[i].error == 0
                         ? tableOf(answers[i].bytes, netdevs[i].index, netdevs[i].infiniband)
                         : std::nullopt,
                     answers[i].error == ENODEV});
  }
  return found;
}

namespace {

// Documentation/ABI/testing/sysfs-bus-pci, since Linux 5.13. It can only be written.
constexpr const char* vectorsFile = "/sriov_vf_msix_count";
constexpr std::size_t standardSpace = 256;

}  // namespace

// PCI Express Base Specification 5.0, 7.7.2.2: bits 10:0 of the message control register are the
// number of entries less one.
std::optional<std::uint16_t> readVectors(const Folder& vf) {
  const std::string config = vf.readBytes("config", 0, standardSpace);
  const auto at = findCapability(config, msix);
  const auto control = at ? configWord(config, *at + 2) : std::nullopt;
  return control ? std::optional(static_cast<std::uint16_t>((*control & 0x7ffU) + 1))
                 : std::nullopt;
}

VfTable VectorPort::read() {
  VfTable table = others_.read();
  for (const VfLink& link : readVfLinks(Folder(root_, functionPath(pf_)))) {
    if (const auto vectors = readVectors(Folder(root_, functionPath(link.address)))) {
      table[link.index].msixVectors = vectors;
    }
  }
  return table;
}

// The other attributes first, because a message has those of all VFs. The VFs share the vectors of
// the PF: those that give some back come before those that get more.
Acknowledgement VectorPort::set(const std::vector<VfRequest>& requests) {
  std::vector<VfRequest> others;
  for (VfRequest request : requests) {
    request.settings.msixVectors.reset();
    if (request.settings != VfSettings{}) {
      others.push_back(request);
    }
  }
  Acknowledgement answer = others.empty() ? Acknowledgement{} : others_.set(others);
  const auto links = readVfLinks(Folder(root_, functionPath(pf_)));
  std::vector<VfRequest> ordered = requests;
  std::ranges::stable_partition(ordered, [&](const VfRequest& request) {
    const auto link = std::ranges::find(links, request.index, &VfLink::index);
    return link != links.end() && request.settings.msixVectors &&
           readVectors(Folder(root_, functionPath(link->address))) > request.settings.msixVectors;
  });
  for (const VfRequest& request : ordered) {
    const auto link = std::ranges::find(links, request.index, &VfLink::index);
    if (answer.error == 0 && request.settings.msixVectors) {
      answer = link == links.end() ? Acknowledgement{ENODEV, "no such VF"}
                                   : write(link->address, *request.settings.msixVectors);
    }
  }
  return answer;
}

// A value that the VF has needs no write, which would be refused while a driver is bound.
Acknowledgement VectorPort::write(const PciAddress& vf, std::uint16_t vectors) {
  const std::string path = functionPath(vf) + vectorsFile;
  if (readVectors(Folder(root_, functionPath(vf))) == vectors) {
    return {};
  }
  if (!root_.exists(path)) {
    return {EOPNOTSUPP, "the kernel has no /" + path};
  }
  try {
    writer_.write(path, std::to_string(vectors), vf, deadline_);
  } catch (const WriteError& error) {
    return {error.number(), "writing /" + path};
  }
  return {};
}

}  // namespace vfpass::host
