// Sets attributes of one VF of any netdev with the host stage's netlink code. It is needed because
// netdevsim has no PCI functions for `vfpass attach`. Usage: set-vf NETDEV INDEX MAC VLAN QOS MIN
// MAX.
#include <net/if.h>

#include <iostream>

#include "sriov/pf_and_vfs.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

using namespace vfpass;

namespace {

unsigned number(const char* text) { return static_cast<unsigned>(parseNumber(text).value()); }

VfChange changeFrom(char** arguments) {
  VfChange change;
  change.index = number(arguments[0]);
  auto& settings = change.settings;
  settings.mac = parseMacAddress(arguments[1]).value();
  settings.vlan = Vlan{static_cast<std::uint16_t>(number(arguments[2])),
                       static_cast<std::uint8_t>(number(arguments[3])), VlanProtocol::dot1q};
  settings.rate = Rate{number(arguments[4]), number(arguments[5])};
  settings.spoofCheck = true;
  settings.trust = true;
  settings.linkState = LinkState::enable;
  change.required = {std::begin(allAttributes), std::end(allAttributes)};
  return change;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::cerr << "usage: set-vf NETDEV INDEX MAC VLAN QOS MIN MAX\n";
    return 2;
  }
  constexpr std::chrono::milliseconds deadline{5000};
  try {
    host::NetlinkPort port(static_cast<int>(if_nametoindex(argv[1])), false, argv[1], deadline);
    host::configureVfs(port, {changeFrom(argv + 2)}, {argv[1], "netdevsim"}, deadline);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
