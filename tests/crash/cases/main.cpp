// Runs one fixed sequence of commands, kills and faults. See docs/reliability.md.
#include <iostream>

#include "cases/case.hpp"
#include "world/run_as_root.hpp"
#include "world/scratch_directory.hpp"

namespace vfpass::crash {
namespace {

std::vector<NamedCase> allCases() {
  std::vector<NamedCase> all;
  for (const auto& group :
       {lostReplyCases(), stuckOperationCases(), laterRunCases(), lockedDeviceCases(),
        databaseCases(), pendingWriteCases(), interleavingCases(), besideDetachCases(),
        besideGcCases(), powerCases(), readerCases(), partitionCases()}) {
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
  using namespace vfpass::crash;
  return runAsRoot("vfpass-crash-cases", [&] { return run(argc == 2 ? argv[1] : ""); });
}
