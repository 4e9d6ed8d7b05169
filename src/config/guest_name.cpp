#include "guest_name.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace vfpass::config {
namespace {

bool isDigit(char letter) { return letter >= '0' && letter <= '9'; }

bool isNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), isDigit);
}

bool isHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// Files in the directories of interfaces: /proc/sys/net/ipv4/conf/all and default, and
// /sys/class/net/bonding_masters.
bool isReserved(std::string_view name) {
  constexpr std::array<std::string_view, 4> names = {"all", "default", "lo", "bonding_masters"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Drivers ask the kernel for the first free name of such a form (alloc_netdev with "eth%d").
bool isKernelName(std::string_view name) {
  constexpr std::array<std::string_view, 27> stems = {
      "bond",   "can",    "dummy",  "erspan", "eth",     "gre",     "gretap", "ib",   "ifb",
      "ip6gre", "ip6tnl", "ipvlan", "macsec", "macvlan", "macvtap", "nlmon",  "sit",  "sl",
      "tap",    "team",   "tun",    "tunl",   "usb",     "veth",    "virbr",  "wlan", "wwan"};
  return std::any_of(stems.begin(), stems.end(), [&](std::string_view stem) {
    return name.starts_with(stem) && isNumber(name.substr(stem.size()));
  });
}

// systemd.net-naming-scheme(7): the type (en, ib, sl, wl, ww), then the place: eno1, ens5, enp1s0,
// enP2p1s0, enx525400123456, end0, env2, enc3.
bool isUdevName(std::string_view name) {
  constexpr std::array<std::string_view, 5> types = {"en", "ib", "sl", "wl", "ww"};
  if (name.size() < 4 || std::find(types.begin(), types.end(), name.substr(0, 2)) == types.end()) {
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

}  // namespace vfpass::config
