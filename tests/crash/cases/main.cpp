// Runs one fixed sequence of commands, kills and faults. See docs/reliability.md.
#include <unistd.h>

#include <iostream>

#include "cases/case.hpp"
#include "world/scratch_directory.hpp"

namespace vfpass::crash {
namespace {

std::vector<NamedCase> allCases() {
  std::vector<NamedCase> all;
  for (const auto& group :
       {lostReplyCases(), stuckOperationCases(), databaseCases(), pendingWriteCases(),
        interleavingCases(), powerCases(), readerCases()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

int runCase(const NamedCase& named) {
  const ScratchDirectory scratch;
  Case test(scratch.path());
  named.run(test);
  return test.failed() ? 1 : 0;
}

int run(const std::string& name) {
  for (const auto& each : allCases()) {
    if (each.name == name) {
      return runCase(each);
    }
  }
  std::cerr << "usage: vfpass-crash-cases NAME; names:\n";
  for (const auto& each : allCases()) {
    std::cerr << "  " << each.name << '\n';
  }
  return 2;
}

}  // namespace
}  // namespace vfpass::crash

int main(int argc, char** argv) {
  if (::geteuid() != 0) {
    std::cout << "skipped: needs root, because it runs vfpass in a chroot\n";
    return 77;
  }
  try {
    return vfpass::crash::run(argc == 2 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::cerr << "vfpass-crash-cases: " << error.what() << '\n';
    return 2;
  }
}
