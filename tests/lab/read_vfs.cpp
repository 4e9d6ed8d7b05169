// Reads the VFs of any netdev with the host stage's netlink code. Prints a line "INDEX MAC" or
// "INDEX unreadable" for each of the first COUNT VFs. Usage: read-vfs NETDEV COUNT.
#include <net/if.h>

#include <iostream>

#include "sriov/vf_port.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

using namespace vfpass;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: read-vfs NETDEV COUNT\n";
    return 2;
  }
  constexpr std::chrono::milliseconds deadline{5000};
  try {
    host::NetlinkPort port(static_cast<int>(if_nametoindex(argv[1])), false, argv[1], deadline);
    const host::VfTable table = port.read();
    const auto count = parseNumber(argv[2]).value();
    for (unsigned index = 0; index < count; ++index) {
      const auto found = table.find(index);
      std::cout << index << ' '
                << (found == table.end() ? "unreadable" : describe(found->second, Attribute::mac))
                << '\n';
    }
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
