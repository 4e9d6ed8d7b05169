#include "block_uses.hpp"

#include <algorithm>

#include "mount_table.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t useLimit = 16;
constexpr std::size_t nameLimit = 256;

// A disk or a partition, with its folder in sysfs.
struct BlockDevice {
  std::string name;
  std::string folder;
};

bool isBelow(const std::string& target, const std::string& path) {
  return target.find("/devices/" + path + "/") != std::string::npos;
}

// With native multipath the disk of an NVMe controller does not sit below its PCI function but
// below a virtual subsystem, which links to its controllers.
bool isBelowSubsystem(const Root& root, const std::string& target, const std::string& path) {
  constexpr std::string_view marker = "/devices/virtual/nvme-subsystem/";
  const auto start = target.find(marker);
  if (start == std::string::npos) {
    return false;
  }
  const std::string rest = target.substr(start + marker.size());
  const std::string folder = "sys/class/nvme-subsystem/" + rest.substr(0, rest.find('/')) + "/";
  const auto names = root.list(folder);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::string controller = root.linkTarget(folder + name).value_or("");
    return name.starts_with("nvme") &&
           (controller + "/").find("/" + path + "/") != std::string::npos;
  });
}

void addDisk(const Root& root, const std::string& disk, std::vector<BlockDevice>& devices) {
  const std::string folder = "sys/block/" + disk;
  devices.push_back({disk, folder});
  for (const std::string& part : root.list(folder)) {
    BlockDevice partition{part, folder + "/" + part};
    if (root.exists(partition.folder + "/partition")) {
      devices.push_back(std::move(partition));
    }
  }
}

std::vector<BlockDevice> blockDevicesBelow(const Root& root, const std::string& path) {
  std::vector<BlockDevice> devices;
  for (const std::string& disk : root.list("sys/block")) {
    const std::string target = root.linkTarget("sys/block/" + disk).value_or("");
    if (isBelow(target, path) || isBelowSubsystem(root, target, path)) {
      addDisk(root, disk, devices);
    }
  }
  return devices;
}

void addUses(const Root& root, const BlockDevice& device, const MountTable& table,
             std::vector<std::string>& uses) {
  const auto add = [&](const std::string& what) {
    if (uses.size() < useLimit) {
      uses.push_back(printable((device.name + " " + what).substr(0, nameLimit)));
    }
  };
  for (const auto& place : table.mountsOf(
           {root.readText(device.folder + "/dev", 64).value_or(""), "/dev/" + device.name})) {
    add("is mounted at " + place);
  }
  if (table.isSwap("/dev/" + device.name)) {
    add("is swap space");
  }
  for (const std::string& holder : root.list(device.folder + "/holders")) {
    add("is part of " + holder);
  }
}

}  // namespace

std::vector<std::string> readBlockUses(const Root& root, const std::string& path) {
  std::vector<std::string> uses;
  const auto devices = blockDevicesBelow(root, path);
  if (devices.empty()) {
    return uses;
  }
  const MountTable table(root);
  for (const BlockDevice& device : devices) {
    addUses(root, device, table, uses);
  }
  if (!table.isComplete()) {
    uses.emplace_back("the mount table is too long to be read, so nobody can tell");
  }
  return uses;
}

}  // namespace vfpass::host
