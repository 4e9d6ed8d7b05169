#include "netlink/rdma_message.hpp"

#include <rdma/rdma_netlink.h>

#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

constexpr int typeOf(int command) { return RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command); }

NetlinkMessage startMessage(int command, int flags) {
  NetlinkMessage message = newMessage();
  requireRoom(nlmsg_put(message.get(), 0, 1, typeOf(command), 0, NLM_F_REQUEST | flags) != nullptr);
  return message;
}

void putNumber(const NetlinkMessage& message, std::uint32_t number) {
  requireRoom(nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, number) == 0);
}

struct ResourceWords {
  int command;
  int table;
  int entry;
};

ResourceWords wordsOf(RdmaResource resource) {
  switch (resource) {
    case RdmaResource::queuePair:
      return {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY};
    case RdmaResource::protectionDomain:
      return {RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY};
    case RdmaResource::memoryRegion:
      return {RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY};
    case RdmaResource::context:
      break;
  }
  return {RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY};
}

// RDMA netlink has no header between the netlink header and the attributes.
nlattr* attributeOf(ReceivedMessage& message, int type) {
  nlmsghdr* header = message.header(0);
  return header == nullptr ? nullptr : nlmsg_find_attr(header, 0, type);
}

void addOwners(nlattr* table, int entryType, std::vector<RdmaOwner>& owners) {
  nlattr* entry = nullptr;
  int remaining = 0;
  nla_for_each_nested(entry, table, remaining) {
    if (nla_type(entry) != entryType) {
      continue;
    }
    RdmaOwner owner;
    owner.process = numberOf<std::uint32_t>(findNested(entry, RDMA_NLDEV_ATTR_RES_PID)).value_or(0);
    owner.module = textOf(findNested(entry, RDMA_NLDEV_ATTR_RES_KERN_NAME));
    owners.push_back(std::move(owner));
  }
}

}  // namespace

std::string rdmaDevicesQuery() { return bytesOf(startMessage(RDMA_NLDEV_CMD_GET, NLM_F_DUMP)); }

std::string softRoceAddition(const std::string& name, const std::string& netdev) {
  const auto message = startMessage(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
  requireRoom(nla_put_string(message.get(), RDMA_NLDEV_ATTR_DEV_NAME, name.c_str()) == 0);
  requireRoom(nla_put_string(message.get(), RDMA_NLDEV_ATTR_LINK_TYPE, "rxe") == 0);
  requireRoom(nla_put_string(message.get(), RDMA_NLDEV_ATTR_NDEV_NAME, netdev.c_str()) == 0);
  return bytesOf(message);
}

std::string rdmaLinkRemoval(std::uint32_t number) {
  const auto message = startMessage(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);
  putNumber(message, number);
  return bytesOf(message);
}

std::string rdmaResourceQuery(RdmaResource resource, std::uint32_t number) {
  const auto message = startMessage(wordsOf(resource).command, NLM_F_DUMP);
  putNumber(message, number);
  return bytesOf(message);
}

std::vector<NumberedDevice> parseRdmaDevices(std::string_view dump) {
  std::vector<NumberedDevice> devices;
  eachMessage(dump, [&](const nlmsghdr& header, std::string_view bytes) {
    if (header.nlmsg_type != typeOf(RDMA_NLDEV_CMD_GET)) {
      return;
    }
    ReceivedMessage message(bytes);
    const auto number = numberOf<std::uint32_t>(attributeOf(message, RDMA_NLDEV_ATTR_DEV_INDEX));
    const std::string name = textOf(attributeOf(message, RDMA_NLDEV_ATTR_DEV_NAME));
    if (number && !name.empty()) {
      devices.push_back({*number, name});
    }
  });
  return devices;
}

std::vector<RdmaOwner> parseRdmaOwners(std::string_view dump, RdmaResource resource) {
  const ResourceWords words = wordsOf(resource);
  std::vector<RdmaOwner> owners;
  eachMessage(dump, [&](const nlmsghdr& header, std::string_view bytes) {
    if (header.nlmsg_type != typeOf(words.command)) {
      return;
    }
    ReceivedMessage message(bytes);
    if (nlattr* table = attributeOf(message, words.table); table != nullptr) {
      addOwners(table, words.entry, owners);
    }
  });
  return owners;
}

std::string rdmaSystemQuery() { return bytesOf(startMessage(RDMA_NLDEV_CMD_SYS_GET, 0)); }

std::optional<bool> parseSharesDevices(std::string_view reply) {
  ReceivedMessage message(reply);
  const nlmsghdr* header = message.header(0);
  if (header == nullptr || header->nlmsg_type != typeOf(RDMA_NLDEV_CMD_SYS_GET)) {
    return std::nullopt;
  }
  const auto shared = numberOf<std::uint8_t>(attributeOf(message, RDMA_NLDEV_SYS_ATTR_NETNS_MODE));
  return shared ? std::optional(*shared != 0) : std::nullopt;
}

}  // namespace vfpass::host
