// The hook is a static program, so the parts of this stage that it uses must link and run without
// shared libraries. Reads this machine's PFs and succeeds even if there are none.
#include <cstdio>

#include "vfpass/error.hpp"
#include "vfpass/host/system_kernel.hpp"

int main() {
  try {
    vfpass::host::SystemKernel kernel;
    std::printf("boot %s, %zu PFs\n", kernel.bootId().c_str(), kernel.readPfs().size());
  } catch (const vfpass::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
