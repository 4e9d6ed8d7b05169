#include "reset_function.hpp"

#include <cerrno>

#include "pci_function.hpp"

namespace vfpass::host {

void resetFunction(const Root& root, KernelWriter& writer, const PciAddress& function,
                   std::chrono::milliseconds deadline) {
  const std::string name = toString(function);
  if (!root.exists(functionPath(function))) {
    throw Error(name + ": there is no such PCI device",
                "`vfpass pf list` and `vfpass vf list` show what there is.");
  }
  // The file is there only when the kernel knows a way to reset this function.
  const std::string path = functionPath(function) + "/reset";
  if (!root.exists(path)) {
    return;
  }
  try {
    writer.write(path, "1", name, deadline);
  } catch (const WriteError& error) {
    if (error.number() != ENOTTY) {  // every method was tried and none fits this device
      throw;
    }
  }
}

}  // namespace vfpass::host
