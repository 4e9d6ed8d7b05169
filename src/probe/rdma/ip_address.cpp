#include "rdma/ip_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

unsigned lengthOf(int family) { return family == AF_INET ? 32 : 128; }

bool isUsable(const IpAddress& address) {
  const std::uint8_t* bytes = address.bytes.data();
  if (std::ranges::all_of(address.bytes, [](std::uint8_t byte) { return byte == 0; })) {
    return false;
  }
  if (address.family == AF_INET) {
    constexpr std::uint8_t firstMulticast = 224;
    return !(bytes[0] == 169 && bytes[1] == 254) && bytes[0] < firstMulticast;
  }
  return !(bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80) && bytes[0] != 0xff;
}

bool sameNetwork(const IpAddress& one, const IpAddress& other) {
  const unsigned length = std::min(one.prefix, other.prefix);
  for (unsigned bit = 0; bit < length; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80U >> bit % 8);
    if (((one.bytes.at(bit / 8) ^ other.bytes.at(bit / 8)) & mask) != 0) {
      return false;
    }
  }
  return true;
}

unsigned prefixOf(const IpAddress& mask) {
  unsigned length = 0;
  for (const std::uint8_t byte : mask.bytes) {
    length += static_cast<unsigned>(std::popcount(byte));
  }
  return length;
}

std::optional<IpAddress> fromSocket(const sockaddr* address) {
  if (address == nullptr) {
    return std::nullopt;
  }
  IpAddress found{address->sa_family, {}, lengthOf(address->sa_family)};
  if (address->sa_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(address);
    std::memcpy(found.bytes.data(), &four->sin_addr, sizeof four->sin_addr);
  } else if (address->sa_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    std::memcpy(found.bytes.data(), &six->sin6_addr, sizeof six->sin6_addr);
  } else {
    return std::nullopt;
  }
  return found;
}

void addOnce(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::ranges::find(names, name) == names.end()) {
    names.push_back(name);
  }
}

}  // namespace

std::optional<IpAddress> parseIpAddress(const std::string& text) {
  const auto slash = text.find('/');
  const std::string digits = text.substr(0, slash);
  IpAddress address;
  if (::inet_pton(AF_INET6, digits.c_str(), address.bytes.data()) == 1) {
    address.family = AF_INET6;
  } else if (::inet_pton(AF_INET, digits.c_str(), address.bytes.data()) != 1) {
    return std::nullopt;
  }
  address.prefix = lengthOf(address.family);
  if (slash != std::string::npos) {
    const auto length = parseNumber(text.substr(slash + 1));
    if (!length || *length > address.prefix) {
      return std::nullopt;
    }
    address.prefix = static_cast<unsigned>(*length);
  }
  return isUsable(address) ? std::optional(address) : std::nullopt;
}

std::string toString(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.family, address.bytes.data(), text.data(), text.size());
  return text.data();
}

std::string networkText(const IpAddress& address) {
  return toString(address) + "/" + std::to_string(address.prefix);
}

sockaddr_storage socketAddress(const IpAddress& address, std::uint16_t port) {
  sockaddr_storage storage{};
  if (address.family == AF_INET) {
    auto* four = reinterpret_cast<sockaddr_in*>(&storage);
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    std::memcpy(&four->sin_addr, address.bytes.data(), sizeof four->sin_addr);
  } else {
    auto* six = reinterpret_cast<sockaddr_in6*>(&storage);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    std::memcpy(&six->sin6_addr, address.bytes.data(), sizeof six->sin6_addr);
  }
  return storage;
}

std::optional<AddressPair> chooseAddresses(const std::vector<IpAddress>& own,
                                           const std::vector<IpAddress>& peer) {
  std::optional<AddressPair> chosen;
  int best = 0;
  for (const IpAddress& near : own) {
    for (const IpAddress& far : peer) {
      const int rank = near.family != far.family ? 0
                                                 : 1 + (near.family == AF_INET ? 1 : 0) +
                                                       (sameNetwork(near, far) ? 2 : 0);
      if (rank > best) {
        best = rank;
        chosen = AddressPair{near, far};
      }
    }
  }
  return chosen;
}

std::vector<IpAddress> addressesOf(const std::vector<std::string>& netdevs) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<IpAddress> found;
  for (const std::string& netdev : netdevs) {
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      auto address = netdev == each->ifa_name ? fromSocket(each->ifa_addr) : std::nullopt;
      if (address && isUsable(*address)) {
        if (const auto mask = fromSocket(each->ifa_netmask)) {
          address->prefix = prefixOf(*mask);
        }
        found.push_back(*address);
      }
    }
  }
  return found;
}

std::vector<std::string> netdevsOf(const SysfsReader& sysfs, const RdmaDevice& device,
                                   const RdmaPort& port) {
  std::vector<std::string> names;
  if (port.ethernet()) {
    for (const GidEntry& gid : port.gids) {
      addOnce(names, gid.netdev);
    }
    return names;
  }
  for (const std::string& name :
       sysfs.names("/sys/class/infiniband/" + device.name + "/device/net")) {
    // Interfaces of one function with several ports are numbered from 0.
    const auto number = parseNumber(sysfs.textOrEmpty("/sys/class/net/" + name + "/dev_port"));
    if (!number || static_cast<int>(*number) + 1 == port.number) {
      addOnce(names, name);
    }
  }
  return names;
}

std::vector<IpAddress> portAddresses(const SysfsReader& sysfs, const std::string& device,
                                     int port) {
  for (const RdmaDevice& each : readRdmaDevices(sysfs)) {
    const auto found = std::ranges::find(each.ports, port, &RdmaPort::number);
    if (each.name == device && found != each.ports.end()) {
      return addressesOf(netdevsOf(sysfs, each, *found));
    }
  }
  return {};
}

}  // namespace vfpass::probe
