// Prints the result of host::findHolders: a line "ADDRESS KIND DESCRIPTION" for each holder of
// these functions. Usage: print-holders [--repeat COUNT] ADDRESS...
#include <iostream>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/find_holders.hpp"

using namespace vfpass;

namespace {

int run(const std::vector<PciAddress>& functions, std::uint64_t count) {
  constexpr std::chrono::milliseconds deadline{5000};
  std::vector<Holder> holders;
  for (; count > 0; --count) {
    holders = host::findHolders(host::Root(), functions, deadline);
  }
  for (const Holder& holder : holders) {
    std::cout << toString(holder.device) << ' ' << toString(holder.kind) << ' '
              << holder.description << (holder.domain ? " [" + toString(*holder.domain) + "]" : "")
              << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::uint64_t count = 1;
  if (arguments.size() > 1 && arguments.front() == "--repeat") {
    count = parseNumber(arguments[1]).value_or(0);
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  std::vector<PciAddress> functions;
  for (const std::string& argument : arguments) {
    if (const auto address = parsePciAddress(argument)) {
      functions.push_back(*address);
    }
  }
  if (count == 0 || functions.empty() || functions.size() != arguments.size()) {
    std::cerr << "usage: print-holders [--repeat COUNT] ADDRESS...\n";
    return 2;
  }
  try {
    return run(functions, count);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
