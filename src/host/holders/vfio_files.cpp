#include "holders/vfio_files.hpp"

#include "sysfs/pci_function.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestNumber = 64;

// `directory` is the kernel's object of the file in sysfs.
DeviceFile fileOf(const Root& root, const std::string& path, const std::string& directory) {
  return {path, parseDeviceNumber(root.readText(directory + "/dev", longestNumber).value_or(""))};
}

DeviceFile groupFile(const Root& root, const std::string& name) {
  return fileOf(root, "/dev/vfio/" + name, "sys/class/vfio/" + name);
}

}  // namespace

std::vector<DeviceFile> vfioFilesOf(const Root& root, const PciAddress& function) {
  std::vector<DeviceFile> files;
  // Without an IOMMU, the kernel creates a group for a device in no-IOMMU mode.
  if (const auto group = readIommuGroup(root, function)) {
    files = {groupFile(root, std::to_string(*group)),
             groupFile(root, "noiommu-" + std::to_string(*group))};
  }
  const std::string directory = functionPath(function) + "/vfio-dev/";
  for (const std::string& device : root.list(directory)) {
    files.push_back(fileOf(root, "/dev/vfio/devices/" + device, directory + device));
  }
  return files;
}

std::vector<DeviceFile> allVfioFiles(const Root& root) {
  std::vector<DeviceFile> files;
  for (const std::string& name : root.list("sys/class/vfio")) {
    files.push_back(groupFile(root, name));
  }
  for (const std::string& name : root.list("sys/class/vfio-dev")) {
    files.push_back(fileOf(root, "/dev/vfio/devices/" + name, "sys/class/vfio-dev/" + name));
  }
  return files;
}

}  // namespace vfpass::host
