// The hook is a static program: what it uses of this stage must link and run without any shared
// library. Reads this machine's PFs; succeeds when that works, whether there are any or not.
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
