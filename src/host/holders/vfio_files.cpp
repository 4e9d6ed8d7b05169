#include "holders/vfio_files.hpp"

#include "pci_function.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestCommandLine = std::size_t{64} << 10U;

}  // namespace

std::vector<std::string> vfioFilesOf(const Root& root, const PciAddress& function) {
  const std::string folder = "/dev/vfio/";
  std::vector<std::string> files;
  // Without an IOMMU the kernel makes a group for the device that no-IOMMU mode hands out.
  if (const auto group = readIommuGroup(root, function)) {
    files = {folder + std::to_string(*group), folder + "noiommu-" + std::to_string(*group)};
  }
  for (const std::string& device : root.list(functionPath(function) + "/vfio-dev")) {
    files.push_back(folder + "devices/" + device);
  }
  return files;
}

std::string readCommandLine(const Root& root, const Process& process) {
  return root.readText("proc/" + process.id + "/cmdline", longestCommandLine).value_or("");
}

}  // namespace vfpass::host
