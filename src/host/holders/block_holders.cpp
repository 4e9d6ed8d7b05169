#include "holders/holder_kinds.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t useLimit = 16;
constexpr std::size_t nameLimit = 256;

// A disk or a partition, with its sysfs directory.
struct BlockDevice {
  std::string name;
  std::string directory;
};

bool isBelow(const std::string& target, const std::string& path) {
  return target.find("/devices/" + path + "/") != std::string::npos;
}

// With native multipath, the disk of an NVMe controller is not below its PCI function but below a
// virtual subsystem, which has links to its controllers.
bool isBelowSubsystem(const Root& root, const std::string& target, const std::string& path) {
  constexpr std::string_view marker = "/devices/virtual/nvme-subsystem/";
  const auto start = target.find(marker);
  if (start == std::string::npos) {
    return false;
  }
  const std::string rest = target.substr(start + marker.size());
  const std::string directory = "sys/class/nvme-subsystem/" + rest.substr(0, rest.find('/')) + "/";
  const auto names = root.list(directory);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::string controller = root.linkTarget(directory + name).value_or("");
    return name.starts_with("nvme") &&
           (controller + "/").find("/" + path + "/") != std::string::npos;
  });
}

void addDisk(const Root& root, const std::string& disk, std::vector<BlockDevice>& devices) {
  const std::string directory = "sys/block/" + disk;
  devices.push_back({disk, directory});
  for (const std::string& part : root.list(directory)) {
    BlockDevice partition{part, directory + "/" + part};
    if (root.exists(partition.directory + "/partition")) {
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

// Also compares device numbers: a container may have the device under any name.
bool hasOpen(const Process& process, const std::string& file, std::optional<dev_t> number) {
  return std::ranges::any_of(process.files, [&](const OpenFile& open) {
    return open.device ? open.isBlock && number && open.device == number : open.target == file;
  });
}

std::vector<std::string> loopDevicesOn(const Root& root, const std::string& file) {
  std::vector<std::string> loops;
  for (const std::string& name : root.list("sys/block", "loop")) {
    if (root.readText("sys/block/" + name + "/loop/backing_file") == file) {
      loops.push_back(name);
    }
  }
  return loops;
}

// Whether a file system, md, dm, swap or anything else claims the device exclusively, which needs
// no mount table. The claim of this call is over at once.
bool isClaimed(const Root& root, const BlockDevice& device) {
  const FileDescriptor file =
      root.open("dev/" + device.name, O_RDONLY | O_EXCL | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  struct stat status {};
  return !file || ::fstat(file.get(), &status) != 0 || !S_ISBLK(status.st_mode) ||
         readDeviceNumber(root, device.directory) != status.st_rdev;
}

// Uses of the block devices of one function.
class BlockUses {
 public:
  BlockUses(const Root& root, const MountTable& mounts, const std::vector<Process>& processes)
      : root_(root), mounts_(mounts), processes_(processes) {}

  void add(const BlockDevice& device) {
    const std::string file = "/dev/" + device.name;
    const auto number = root_.readText(device.directory + "/dev", 64).value_or("");
    for (const MountPoint& mount : mounts_.mountsOf({number, file})) {
      addUse(device, "is mounted at " + mount.path +
                         (mount.owner.empty() ? "" : " in the mount namespace of " + mount.owner));
    }
    if (mounts_.isSwap(file)) {
      addUse(device, "is swap space");
    }
    for (const std::string& holder : root_.list(device.directory + "/holders")) {
      addUse(device, "is part of " + holder);
    }
    for (const std::string& loop : loopDevicesOn(root_, file)) {
      addUse(device, "backs " + loop);
    }
    for (const Process& process : processes_) {
      if (hasOpen(process, file, parseDeviceNumber(number))) {
        addUse(device, "is open in " + describe(process));
      }
    }
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(uses_); }

 private:
  void addUse(const BlockDevice& device, const std::string& what) {
    if (uses_.size() < useLimit) {
      uses_.push_back(printable((device.name + " " + what).substr(0, nameLimit)));
    }
  }

  const Root& root_;
  const MountTable& mounts_;
  const std::vector<Process>& processes_;
  std::vector<std::string> uses_;
};

}  // namespace

std::vector<Holder> blockHolders(const Root& root, const FunctionFacts& function,
                                 const MountTable& mounts, const std::vector<Process>& processes) {
  std::vector<Holder> holders;
  if (function.path.empty() || isBridge(function)) {
    return holders;  // much of the host may be below a bridge
  }
  for (const std::string& use : readBlockUses(root, function.path, mounts, processes)) {
    holders.push_back({HolderKind::block, function.address, "its disk " + use,
                       "unmount the disk and stop everything else that uses it", std::nullopt});
  }
  return holders;
}

std::vector<std::string> readBlockUses(const Root& root, const std::string& path) {
  // Without a disk, the mount table is not read.
  return blockDevicesBelow(root, path).empty() ? std::vector<std::string>{}
                                               : readBlockUses(root, path, MountTable(root), {});
}

std::vector<std::string> readBlockUses(const Root& root, const std::string& path,
                                       const MountTable& mounts,
                                       const std::vector<Process>& processes) {
  const auto devices = blockDevicesBelow(root, path);
  BlockUses found(root, mounts, processes);
  for (const BlockDevice& device : devices) {
    found.add(device);
  }
  std::vector<std::string> uses = found.take();
  // Any user can have so many mounts that they cannot be read in time.
  const auto claimed = [&](const BlockDevice& device) {
    return !root.isLive() || isClaimed(root, device);
  };
  if (uses.empty() && !mounts.isComplete() && std::ranges::any_of(devices, claimed)) {
    uses.emplace_back(
        "may be mounted: cannot read all mount tables, and it is claimed exclusively");
  }
  return uses;
}

}  // namespace vfpass::host
