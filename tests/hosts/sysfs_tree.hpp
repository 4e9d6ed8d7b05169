#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace vfpass::hosts {

/// A host's sysfs, made by hand in a temporary folder, laid out as the kernel lays it out: devices
/// below sys/devices, relative links to them from everywhere else.
class SysfsTree {
 public:
  SysfsTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "vfpass-tree-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    path_ = pattern;
    std::filesystem::create_directories(path_ / "sys/bus/pci/devices");
    std::filesystem::create_directories(path_ / "sys/bus/pci/drivers");
    std::filesystem::create_directories(path_ / "sys/kernel/iommu_groups");
  }
  SysfsTree(const SysfsTree&) = delete;
  SysfsTree& operator=(const SysfsTree&) = delete;
  ~SysfsTree() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  void file(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << content;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ / name).rdbuf();
    return text.str();
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path_ / name); }

  /// `name` becomes a relative link to `target`, both below the tree's root.
  void link(const std::string& name, const std::string& target) const {
    const auto place = path_ / name;
    std::filesystem::create_directories(place.parent_path());
    std::filesystem::remove(place);
    std::filesystem::create_symlink(std::filesystem::relative(path_ / target, place.parent_path()),
                                    place);
  }

  /// A PCI function behind the root port 0000:00:01.0; gives its folder.
  std::string function(const std::string& address,
                       const std::string& classCode = "0x020000") const {
    const std::string folder = "sys/devices/pci0000:00/0000:00:01.0/" + address;
    file(folder + "/vendor", "0x15b3\n");
    file(folder + "/device", "0x101d\n");
    file(folder + "/class", classCode + "\n");
    file(folder + "/driver_override", "(null)\n");
    file(folder + "/numa_node", "-1\n");
    link("sys/bus/pci/devices/" + address, folder);
    return folder;
  }
  void driver(const std::string& name) const {
    std::filesystem::create_directories(path_ / "sys/bus/pci/drivers" / name);
    file("sys/bus/pci/drivers/" + name + "/bind", "");
    file("sys/bus/pci/drivers/" + name + "/unbind", "");
  }
  void bind(const std::string& address, const std::string& name) const {
    driver(name);
    link(folderOf(address) + "/driver", "sys/bus/pci/drivers/" + name);
  }
  void netdev(const std::string& address, const std::string& name, int index,
              const std::string& flags = "0x1002", int type = 1) const {
    const std::string folder = folderOf(address) + "/net/" + name;
    file(folder + "/ifindex", std::to_string(index) + "\n");
    file(folder + "/flags", flags + "\n");
    file(folder + "/type", std::to_string(type) + "\n");
  }
  void group(const std::string& address, unsigned number) const {
    const std::string folder = "sys/kernel/iommu_groups/" + std::to_string(number);
    link(folder + "/devices/" + address, folderOf(address));
    link(folderOf(address) + "/iommu_group", folder);
  }
  /// A disk of that function, with its number.
  void block(const std::string& address, const std::string& disk, const std::string& number) const {
    file(blockFolder(address, disk) + "/dev", number + "\n");
    link("sys/block/" + disk, blockFolder(address, disk));
  }
  void partition(const std::string& address, const std::string& disk, const std::string& name,
                 const std::string& number) const {
    file(blockFolder(address, disk) + "/" + name + "/dev", number + "\n");
    file(blockFolder(address, disk) + "/" + name + "/partition", "1\n");
  }
  static std::string blockFolder(const std::string& address, const std::string& disk) {
    return folderOf(address) + "/block/" + disk;
  }
  /// 0000:01:00.0 with `total` possible VFs, driven by mlx5_core, netdev ens1f0np0.
  std::string pf(unsigned total) const {
    const std::string folder = function("0000:01:00.0");
    file(folder + "/sriov_totalvfs", std::to_string(total) + "\n");
    file(folder + "/sriov_drivers_autoprobe", "1\n");
    file(folder + "/sriov_numvfs", "0\n");
    bind("0000:01:00.0", "mlx5_core");
    netdev("0000:01:00.0", "ens1f0np0", 7, "0x1003");
    return folder;
  }
  /// VF `index` of that PF, at function number `index` + 1.
  std::string vf(unsigned index) const {
    const std::string address = "0000:01:00." + std::to_string(index + 1);
    const std::string folder = function(address);
    link(folder + "/physfn", folderOf("0000:01:00.0"));
    link(folderOf("0000:01:00.0") + "/virtfn" + std::to_string(index), folder);
    return address;
  }

  static std::string folderOf(const std::string& address) {
    return "sys/devices/pci0000:00/0000:00:01.0/" + address;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace vfpass::hosts
