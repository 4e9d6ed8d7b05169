#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "readers.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/config/configuration.hpp"

namespace vfpass::config {
namespace {

using Bytes = std::span<const std::uint8_t>;

// True if every bit after the prefix has this value.
bool hostBitsAre(Bytes address, std::size_t prefix, bool value) {
  for (std::size_t bit = prefix; bit < address.size() * 8; ++bit) {
    const bool set = (address[bit / 8] >> (7 - bit % 8) & 1U) != 0;
    if (set != value) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> fault(Bytes address, std::size_t prefix) {
  const std::size_t bits = address.size() * 8;
  if (prefix == 0 || prefix > bits) {
    return "expected a prefix length from 1 to " + std::to_string(bits);
  }
  const bool version4 = address.size() == 4;
  if (version4 ? (address[0] & 0xf0U) == 0xe0U : address[0] == 0xff) {
    return "it is a multicast address";
  }
  if (std::ranges::all_of(address, [](std::uint8_t byte) { return byte == 0; })) {
    return "it is the unspecified address";
  }
  // RFC 3021: a /31 has neither network nor broadcast address.
  if (version4 && prefix < 31 && hostBitsAre(address, prefix, false)) {
    return "it is the network address";
  }
  if (version4 && prefix < 31 && hostBitsAre(address, prefix, true)) {
    return "it is the broadcast address of the network";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> guestAddressFault(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto prefix =
      slash == std::string::npos ? std::nullopt : parseNumber(text.substr(slash + 1));
  if (!prefix) {
    return "expected ADDRESS/PREFIX, such as 192.168.100.10/24";
  }
  const std::string address = text.substr(0, slash);
  std::array<std::uint8_t, 16> bytes{};
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) {
    return fault(Bytes(bytes).first(4), *prefix);
  }
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) {
    return fault(bytes, *prefix);
  }
  return "expected an IPv4 or IPv6 address before the `/`";
}

namespace {

bool isDigit(char letter) { return letter >= '0' && letter <= '9'; }

bool isNumber(std::string_view text) { return !text.empty() && std::ranges::all_of(text, isDigit); }

bool isHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// Files in the directories of interfaces: /proc/sys/net/ipv4/conf/all and default, and
// /sys/class/net/bonding_masters.
bool isReserved(std::string_view name) {
  constexpr std::array<std::string_view, 4> names = {"all", "default", "lo", "bonding_masters"};
  return std::ranges::find(names, name) != names.end();
}

// Drivers ask the kernel for the first free name of such a form (alloc_netdev with "eth%d").
bool isKernelName(std::string_view name) {
  constexpr std::array<std::string_view, 27> stems = {
      "bond",   "can",    "dummy",  "erspan", "eth",     "gre",     "gretap", "ib",   "ifb",
      "ip6gre", "ip6tnl", "ipvlan", "macsec", "macvlan", "macvtap", "nlmon",  "sit",  "sl",
      "tap",    "team",   "tun",    "tunl",   "usb",     "veth",    "virbr",  "wlan", "wwan"};
  return std::ranges::any_of(stems, [&](std::string_view stem) {
    return name.starts_with(stem) && isNumber(name.substr(stem.size()));
  });
}

// systemd.net-naming-scheme(7): the type (en, ib, sl, wl, ww), then the place: eno1, ens5, enp1s0,
// enP2p1s0, enx525400123456, end0, env2, enc3.
bool isUdevName(std::string_view name) {
  constexpr std::array<std::string_view, 5> types = {"en", "ib", "sl", "wl", "ww"};
  if (name.size() < 4 || std::ranges::find(types, name.substr(0, 2)) == types.end()) {
    return false;
  }
  constexpr std::string_view places = "abcdiopPsuvX";
  return name[2] == 'x' ? isHex(name.substr(3))
                        : places.find(name[2]) != std::string_view::npos && isDigit(name[3]);
}

}  // namespace

std::optional<std::string> guestNameFault(const std::string& name) {
  if (isReserved(name)) {
    return "it is reserved";
  }
  if (isKernelName(name)) {
    return "the kernel may give it to another interface";
  }
  if (isUdevName(name)) {
    return "udev may give it to another interface";
  }
  return std::nullopt;
}

std::vector<Problem> repeatedGuestNames(const Mapping& mapping) {
  std::vector<Problem> problems;
  std::map<std::string, const MappedVf*> first;
  for (const MappedVf& vf : mapping.vfs) {
    if (!vf.guest.name) {
      continue;
    }
    const auto [earlier, added] = first.emplace(*vf.guest.name, &vf);
    if (!added) {
      problems.push_back({vf.place,
                          "interface name " + *vf.guest.name + " already belongs to " +
                              earlier->second->name + " (" + toString(earlier->second->place) + ")",
                          "choose another one"});
    }
  }
  return problems;
}

namespace {

/// A value that only one entry in all mappings can have.
struct UniqueValue {
  std::string thing;  ///< "MAC address 52:54:00:12:34:56"; equal text means the same value
  std::string owned;  ///< "already belongs to rail0 of train0"
  SourcePlace place;
  std::size_t mapping = 0;
  std::string hint;
};

using Visit = std::function<void(const UniqueValue&)>;

std::string vmThing(const std::string& vm) {
  const auto uuid = parseUuid(vm);
  return "virtual machine " + (uuid ? toString(*uuid) : vm);
}

void visitVf(const Mapping& mapping, const MappedVf& vf, std::size_t number, const Visit& visit) {
  const std::string owned = "already belongs to " + vf.name + " of " + mapping.vm;
  const auto has = [&](const std::string& thing, const std::string& hint) {
    visit({thing, owned, vf.place, number, hint});
  };
  if (vf.settings.mac) {
    has("MAC address " + toString(*vf.settings.mac), "use another one, or `auto`");
  }
  // A VF may use the same GUID for its node and its port.
  std::set<Guid> guids;
  for (const auto& guid : {vf.settings.nodeGuid, vf.settings.portGuid}) {
    if (guid && guids.insert(*guid).second) {
      has("GUID " + toString(*guid), "use another one, or `auto`");
    }
  }
  // `near` refers to a GPU of the same mapping; its PF depends on the host.
  if (vf.index && vf.pf != PfSelector{} && !vf.pf.near) {
    has("VF " + std::to_string(*vf.index) + " of PF " + toString(vf.pf),
        "use another index, or `auto`");
  }
}

void visitMapping(const Mapping& mapping, std::size_t number, const Visit& visit) {
  visit({vmThing(mapping.vm), "already has a mapping", mapping.vmPlace, number,
         "write one file for each virtual machine"});
  for (const auto& vf : mapping.vfs) {
    visitVf(mapping, vf, number, visit);
  }
  for (const auto& function : mapping.functions) {
    visit({"PCI function " + toString(function.pci),
           "already belongs to " + function.name + " of " + mapping.vm, function.place, number,
           "list each PCI function in one entry only"});
    if (function.nvlinkModule) {
      visit({"NVLink module ID " + std::to_string(*function.nvlinkModule),
             "already belongs to " + function.name + " of " + mapping.vm, function.place, number,
             "correct `nvlink-module`: `fmpm -l` shows the number of each GPU (physicalId)"});
    }
  }
}

std::vector<Problem> collisions(std::span<const Mapping> mappings, bool sameMapping) {
  std::vector<Problem> problems;
  std::map<std::string, UniqueValue> first;
  const Visit visit = [&](const UniqueValue& value) {
    const auto [earlier, added] = first.emplace(value.thing, value);
    if (!added && (earlier->second.mapping == value.mapping) == sameMapping) {
      problems.push_back(
          {value.place,
           value.thing + " " + earlier->second.owned + " (" + toString(earlier->second.place) + ")",
           value.hint});
    }
  };
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    visitMapping(mappings[i], i, visit);
  }
  return problems;
}

}  // namespace

std::vector<Problem> collisionsWithin(const Mapping& mapping) {
  std::vector<Problem> problems = collisions({&mapping, 1}, true);
  const std::vector<Problem> names = repeatedGuestNames(mapping);
  problems.insert(problems.end(), names.begin(), names.end());
  return problems;
}

std::vector<Problem> crossCheck(const std::vector<Mapping>& mappings) {
  return collisions(mappings, false);
}

}  // namespace vfpass::config
