#include "netlink/devlink.hpp"

#include <linux/devlink.h>
#include <linux/netlink.h>
#include <netlink/genl/genl.h>

#include "vfpass/error.hpp"
#include "vfpass/host/link_settings.hpp"

namespace vfpass::host {
namespace {

NetlinkMessage startGeneric(int family, int flags, std::uint8_t command) {
  NetlinkMessage message = newMessage();
  requireRoom(genlmsg_put(message.get(), 0, 1, family, 0, NLM_F_REQUEST | flags, command,
                          DEVLINK_GENL_VERSION) != nullptr);
  return message;
}

std::string devlinkFamilyQuery() {
  const auto message = startGeneric(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);
  requireRoom(nla_put_string(message.get(), CTRL_ATTR_FAMILY_NAME, DEVLINK_GENL_NAME) == 0);
  return bytesOf(message);
}

// DEVLINK_PORT_FN_ATTR_CAPS and DEVLINK_PORT_FN_CAP_MIGRATABLE of include/uapi/linux/devlink.h,
// which headers before Linux 6.2 lack.
constexpr int functionCapabilities = 4;
constexpr std::uint32_t migratableBit = 1U << 1U;

// The index of the VF behind a port of this PF. Ports of other hosts of the card (BlueField) are
// external.
std::optional<unsigned> vfBehind(nlmsghdr* header, const PciAddress& pf) {
  const auto flavour = numberOf<std::uint16_t>(attributeOf(header, DEVLINK_ATTR_PORT_FLAVOUR));
  const auto vf = numberOf<std::uint16_t>(attributeOf(header, DEVLINK_ATTR_PORT_PCI_VF_NUMBER));
  const auto external = numberOf<std::uint8_t>(attributeOf(header, DEVLINK_ATTR_PORT_EXTERNAL));
  const bool ours = isText(attributeOf(header, DEVLINK_ATTR_DEV_NAME), toString(pf)) &&
                    flavour == DEVLINK_PORT_FLAVOUR_PCI_VF && external.value_or(0) == 0;
  return ours && vf ? std::optional<unsigned>(*vf) : std::nullopt;
}

std::optional<bool> migratableOf(nlmsghdr* header) {
  const nlattr* function = attributeOf(header, DEVLINK_ATTR_PORT_FUNCTION);
  const auto known = numberOf<nla_bitfield32>(findNested(function, functionCapabilities));
  return known && (known->selector & migratableBit) != 0
             ? std::optional((known->value & migratableBit) != 0)
             : std::nullopt;
}

PortFunctions readPortFunctions(std::uint16_t family, const PciAddress& pf,
                                const ExchangePurpose& purpose,
                                std::chrono::milliseconds deadline) {
  const std::string request = bytesOf(startDevlink(family, NLM_F_DUMP, DEVLINK_CMD_PORT_GET, pf));
  const std::string dump = dumpNetlink(NETLINK_GENERIC, request, purpose, deadline);
  if (dumpError(dump) != 0) {
    throwNoData(purpose, dump);
  }
  return parsePortFunctions(dump, family, pf);
}

std::optional<PortFunction> readPortFunction(std::uint16_t family, const PciAddress& pf,
                                             unsigned index, const ExchangePurpose& purpose,
                                             std::chrono::milliseconds deadline) {
  const auto found = readPortFunctions(family, pf, purpose, deadline);
  const auto at = found.find(index);
  return at == found.end() ? std::nullopt : std::optional(at->second);
}

constexpr const char* checkRemedy =
    "run `vfpass doctor`: eswitch and vf-migration name what is missing";

std::string changeRemedy(int /*error*/) { return checkRemedy; }

}  // namespace

NetlinkMessage startDevlink(std::uint16_t family, int flags, std::uint8_t command,
                            const PciAddress& pf) {
  NetlinkMessage message = startGeneric(family, flags, command);
  requireRoom(nla_put_string(message.get(), DEVLINK_ATTR_BUS_NAME, "pci") == 0);
  requireRoom(nla_put_string(message.get(), DEVLINK_ATTR_DEV_NAME, toString(pf).c_str()) == 0);
  return message;
}

nlattr* attributeOf(nlmsghdr* header, int type) {
  return nlmsg_find_attr(header, genericHeadBytes, type);
}

std::optional<std::uint16_t> parseFamily(std::string_view bytes) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(genlmsghdr));
  if (header == nullptr || header->nlmsg_type != GENL_ID_CTRL ||
      !isText(attributeOf(header, CTRL_ATTR_FAMILY_NAME), DEVLINK_GENL_NAME)) {
    return std::nullopt;
  }
  return numberOf<std::uint16_t>(attributeOf(header, CTRL_ATTR_FAMILY_ID));
}

std::optional<std::uint16_t> devlinkFamily(const ExchangePurpose& purpose,
                                           std::chrono::milliseconds deadline) {
  return parseFamily(exchangeNetlink(NETLINK_GENERIC, devlinkFamilyQuery(), purpose, deadline));
}

PortFunctions parsePortFunctions(std::string_view dump, std::uint16_t family,
                                 const PciAddress& pf) {
  PortFunctions found;
  eachMessage(dump, [&](const nlmsghdr& head, std::string_view bytes) {
    ReceivedMessage received(bytes);
    nlmsghdr* header = received.header(sizeof(genlmsghdr));
    if (header == nullptr || head.nlmsg_type != family) {
      return;
    }
    const auto vf = vfBehind(header, pf);
    const auto port = numberOf<std::uint32_t>(attributeOf(header, DEVLINK_ATTR_PORT_INDEX));
    if (vf && port) {
      found.try_emplace(*vf, PortFunction{*port, migratableOf(header)});
    }
  });
  return found;
}

MigratableVfs readMigratable(const PciAddress& pf, std::chrono::milliseconds deadline) {
  const ExchangePurpose purpose{"PF " + toString(pf), "reading which VFs are migratable"};
  const auto family = devlinkFamily(purpose, deadline);
  MigratableVfs vfs;
  if (family) {
    for (const auto& [index, function] : readPortFunctions(*family, pf, purpose, deadline)) {
      vfs.emplace(index, function.migratable);
    }
  }
  return vfs;
}

std::string migratableChange(std::uint16_t family, const PciAddress& pf, std::uint32_t port,
                             bool migratable) {
  const auto message = startDevlink(family, NLM_F_ACK, DEVLINK_CMD_PORT_SET, pf);
  requireRoom(nla_put_u32(message.get(), DEVLINK_ATTR_PORT_INDEX, port) == 0);
  nlattr* function = nla_nest_start(message.get(), DEVLINK_ATTR_PORT_FUNCTION | NLA_F_NESTED);
  requireRoom(function != nullptr);
  const nla_bitfield32 capability{migratable ? migratableBit : 0, migratableBit};
  requireRoom(nla_put(message.get(), functionCapabilities, sizeof capability, &capability) == 0);
  nla_nest_end(message.get(), function);
  return bytesOf(message);
}

void setMigratable(const PciAddress& pf, unsigned index, bool migratable,
                   std::chrono::milliseconds deadline) {
  const ExchangePurpose purpose{
      "PF " + toString(pf),
      "making VF " + std::to_string(index) + (migratable ? " migratable" : " not migratable"), pf};
  const auto family = devlinkFamily(purpose, deadline);
  const auto function =
      family ? readPortFunction(*family, pf, index, purpose, deadline) : std::nullopt;
  if (!function && migratable) {
    throwFailed(purpose, "devlink has no port of this VF, because the PF is not in switchdev mode",
                checkRemedy);
  }
  if (!function || function->migratable == migratable) {
    return;
  }
  if (!function->migratable) {
    if (migratable) {
      throwFailed(purpose, "neither its kernel nor its firmware can", checkRemedy);
    }
    return;
  }
  requireChange(NETLINK_GENERIC, migratableChange(*family, pf, function->port, migratable), purpose,
                deadline, changeRemedy);
  const auto after = readPortFunction(*family, pf, index, purpose, deadline);
  if (!after || after->migratable != migratable) {
    throwFailed(purpose, "the change had no effect", checkRemedy);
  }
}

}  // namespace vfpass::host
