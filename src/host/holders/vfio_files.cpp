#include "holders/vfio_files.hpp"

#include "sysfs/pci_function.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestCommandLine = std::size_t{64} << 10U;

}  // namespace

std::vector<std::string> vfioFilesOf(const Root& root, const PciAddress& function) {
  const std::string directory = "/dev/vfio/";
  std::vector<std::string> files;
  // Without an IOMMU, the kernel creates a group for a device in no-IOMMU mode.
  if (const auto group = readIommuGroup(root, function)) {
    files = {directory + std::to_string(*group), directory + "noiommu-" + std::to_string(*group)};
  }
  for (const std::string& device : root.list(functionPath(function) + "/vfio-dev")) {
    files.push_back(directory + "devices/" + device);
  }
  return files;
}

std::string readCommandLine(const Root& root, const Process& process) {
  return root.readText("proc/" + process.id + "/cmdline", longestCommandLine).value_or("");
}

}  // namespace vfpass::host
