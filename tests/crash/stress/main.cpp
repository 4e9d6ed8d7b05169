// vfpass-crash-stress SEED ROUNDS ACTIONS KILLS: many processes at once. See docs/reliability.md.
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "stress/stress.hpp"
#include "world/scratch_directory.hpp"

namespace vfpass::crash {
namespace {

void print(const Stress& stress, std::uint32_t seed) {
  if (stress.faults().empty()) {
    return;
  }
  std::cout << "seed " << seed << ", log:\n";
  for (const auto& line : stress.log()) {
    std::cout << "  " << line << '\n';
  }
  for (const auto& fault : stress.faults()) {
    std::cout << "FAULT " << fault << '\n';
  }
}

int run(std::uint32_t seed, unsigned rounds, unsigned actions, unsigned kills) {
  std::map<std::string, long> counts;
  std::size_t faults = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    const ScratchDirectory scratch;
    Stress stress(seed + round, kills, scratch.path() / "host");
    stress.run(actions);
    print(stress, seed + round);
    faults += stress.faults().size();
    for (const auto& [what, number] : stress.counts()) {
      counts[what] += number;
    }
  }
  for (const auto& [what, number] : counts) {
    std::cout << number << "  " << what << '\n';
  }
  std::cout << faults << "  faults\n";
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace vfpass::crash

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: vfpass-crash-stress SEED ROUNDS ACTIONS KILLS_PER_10000_REQUESTS\n";
    return 2;
  }
  if (::geteuid() != 0) {
    std::cout << "skipped: needs root, because it runs vfpass in a chroot\n";
    return 77;
  }
  const auto number = [argv](int at) {
    return static_cast<unsigned>(std::strtoul(argv[at], nullptr, 10));
  };
  try {
    return vfpass::crash::run(number(1), number(2), number(3), number(4));
  } catch (const std::exception& error) {
    std::cerr << "vfpass-crash-stress: " << error.what() << '\n';
    return 2;
  }
}
