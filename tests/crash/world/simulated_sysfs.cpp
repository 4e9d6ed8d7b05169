// The part of SimulatedKernel that is PCI: functions, VFs, drivers and the files of sysfs.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "vfpass/base/text.hpp"
#include "world/simulated_kernel.hpp"

namespace vfpass::crash {
namespace {

std::string lastName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

unsigned routingIdOf(const std::string& function) {
  const PciAddress address = *parsePciAddress(function);
  return address.bus * 256U + address.slot * 8U + address.function;
}

// Each function has a group of its own.
std::string groupOf(const std::string& function) {
  return "sys/kernel/iommu_groups/" + std::to_string(routingIdOf(function));
}

VfSettings settingsOfNewVf() {
  VfSettings settings = neutralSettings(false);
  settings.spoofCheck = false;
  return settings;
}

}  // namespace

void SimulatedKernel::addPciFunction(const std::string& address, const std::string& port,
                                     const std::string& classCode) const {
  const std::string directory = "sys/devices/pci0000:00/" + port + "/" + address;
  files_.write(directory + "/vendor", "0x15b3\n");
  files_.write(directory + "/device", "0x101d\n");
  files_.write(directory + "/class", classCode + "\n");
  files_.write(directory + "/driver_override", "(null)\n");
  files_.write(directory + "/numa_node", "-1\n");
  files_.write(directory + "/reset", "");
  files_.write(directory + "/reset_method", "flr\n");
  files_.link("sys/bus/pci/devices/" + address, directory);
  files_.link(groupOf(address) + "/devices/" + address, directory);
  files_.link(directory + "/iommu_group", groupOf(address));
}

void SimulatedKernel::addPf(const std::string& address, const std::string& port,
                            const std::string& netdev, int ifindex) {
  SimulatedPf pf;
  pf.address = *parsePciAddress(address);
  pf.port = port;
  pf.ifindex = ifindex;
  pf.netdev = netdev;
  addPciFunction(address, port, "0x020000");
  const std::string directory = files_.directoryOf(address);
  files_.write(directory + "/sriov_totalvfs", std::to_string(pf.totalVfs) + "\n");
  files_.write(directory + "/sriov_drivers_autoprobe", "1\n");
  files_.write(directory + "/sriov_numvfs", "0\n");
  files_.write(directory + "/sriov_offset", "1\n");
  files_.write(directory + "/sriov_stride", "1\n");
  files_.link(directory + "/driver", "sys/bus/pci/drivers/mlx5_core");
  files_.write(directory + "/net/" + netdev + "/ifindex", std::to_string(ifindex) + "\n");
  files_.write(directory + "/net/" + netdev + "/flags", "0x1003\n");
  files_.write(directory + "/net/" + netdev + "/type", "1\n");
  pfs.push_back(pf);
}

void SimulatedKernel::addFunction(const std::string& address, const std::string& port,
                                  const std::string& driver, const std::string& classCode) {
  addPciFunction(address, port, classCode);
  files_.link(files_.directoryOf(address) + "/driver", "sys/bus/pci/drivers/" + driver);
  functions[*parsePciAddress(address)] = driver;
}

// Opening a FIFO waits for a writer, as reading the file waits for the lock
// (drivers/pci/pci-sysfs.c).
void SimulatedKernel::holdLock(const std::string& function) {
  const std::string name = files_.directoryOf(function) + "/driver_override";
  overridesOfLocked_[function] = files_.read(name);
  files_.remove(name);
  if (::mkfifo((files_.root() / name).c_str(), 0644) != 0) {
    throw std::system_error(errno, std::generic_category(), "mkfifo");
  }
}

void SimulatedKernel::releaseLock(const std::string& function) {
  const std::string name = files_.directoryOf(function) + "/driver_override";
  ::close(::open((files_.root() / name).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  files_.write(name, overridesOfLocked_.extract(function).mapped());
}

void SimulatedKernel::setVfCount(const std::string& pf, unsigned count) {
  applyVfCount(*findPf(pf), count);
}

void SimulatedKernel::removeVfs(SimulatedPf& pf) {
  const std::string address = toString(pf.address);
  for (const auto& [index, settings] : pf.vfs) {
    const std::string vf = vfAddressOf(address, index);
    files_.remove(files_.directoryOf(address) + "/virtfn" + std::to_string(index));
    files_.remove(groupOf(vf));
    files_.remove(files_.directoryOf(vf));
    files_.remove("sys/bus/pci/devices/" + vf);
  }
  pf.vfs.clear();
}

void SimulatedKernel::applyVfCount(SimulatedPf& pf, unsigned count) {
  removeVfs(pf);
  const std::string address = toString(pf.address);
  const std::string directory = files_.directoryOf(address);
  const bool probe = files_.read(directory + "/sriov_drivers_autoprobe").starts_with('1');
  for (unsigned index = 0; index < count; ++index) {
    const std::string vf = vfAddressOf(address, index);
    addPciFunction(vf, pf.port, "0x020000");
    files_.link(files_.directoryOf(vf) + "/physfn", directory);
    files_.link(directory + "/virtfn" + std::to_string(index), files_.directoryOf(vf));
    pf.vfs[index] = settingsOfNewVf();
    if (probe) {
      bind(vf, "mlx5_core");
    }
  }
  files_.write(directory + "/sriov_numvfs", std::to_string(count) + "\n");
}

void SimulatedKernel::bind(const std::string& function, const std::string& driver) {
  const std::string directory = files_.directoryOf(function);
  files_.link(directory + "/driver", "sys/bus/pci/drivers/" + driver);
  if (driver == "mlx5_core") {
    const std::string index = std::to_string(1000 + routingIdOf(function));
    files_.write(directory + "/net/v" + index + "/ifindex", index + "\n");
    files_.write(directory + "/net/v" + index + "/flags", "0x1002\n");
    files_.write(directory + "/net/v" + index + "/type", "1\n");
  }
}

int SimulatedKernel::writeFile(const std::string& path, const std::string& text) {
  const std::string name = lastName(path);
  const std::string directory = path.substr(0, path.rfind('/'));
  if (name == "bind" || name == "unbind") {
    return writeDriverFile(lastName(directory), name == "bind", text);
  }
  const std::string function = lastName(directory);
  if (!files_.hasFunction(function)) {
    return ENOENT;
  }
  if (name == "driver_override") {
    files_.write(files_.directoryOf(function) + "/driver_override",
                 text == "\n" ? "(null)\n" : text);
    return 0;
  }
  if (name == "reset") {
    return brokenResets.contains(function) ? EIO : 0;
  }
  SimulatedPf* pf = findPf(function);
  return pf == nullptr ? ENOENT : writePfFile(*pf, name, text);
}

int SimulatedKernel::writeDriverFile(const std::string& driver, bool bindIt,
                                     const std::string& function) {
  if (!files_.hasFunction(function)) {
    return ENODEV;
  }
  const std::string directory = files_.directoryOf(function);
  const std::string current = files_.driverOf(function);
  if (!bindIt) {
    if (current != driver) {
      return ENODEV;
    }
    files_.remove(directory + "/driver");
    files_.remove(directory + "/net");
    return 0;
  }
  // vfio-pci has no IDs: it binds only a function with its name in driver_override.
  const std::string selected(trim(files_.read(directory + "/driver_override")));
  if (!current.empty() || (selected != "(null)" ? selected != driver : driver == "vfio-pci")) {
    return ENODEV;
  }
  bind(function, driver);
  return 0;
}

int SimulatedKernel::writePfFile(SimulatedPf& pf, const std::string& name,
                                 const std::string& text) {
  if (name == "sriov_drivers_autoprobe") {
    files_.write(files_.directoryOf(toString(pf.address)) + "/" + name, text + "\n");
    return 0;
  }
  if (name != "sriov_numvfs") {
    return EINVAL;
  }
  const auto count = static_cast<unsigned>(std::atoi(text.c_str()));
  if (count == pf.vfs.size()) {
    return 0;
  }
  if (count > pf.totalVfs) {
    return ERANGE;
  }
  if (count != 0 && !pf.vfs.empty()) {
    return EBUSY;
  }
  applyVfCount(pf, count);
  return 0;
}

void SimulatedKernel::reboot() {
  pending_.clear();
  rdmaDevices.clear();
  for (auto& pf : pfs) {
    files_.write(files_.directoryOf(toString(pf.address)) + "/sriov_drivers_autoprobe", "1\n");
    applyVfCount(pf, 0);
    pf.mtu = 1500;
    pf.up = true;
    pf.switchdev = false;
  }
  for (const auto& [address, driver] : functions) {
    const std::string directory = files_.directoryOf(toString(address));
    files_.write(directory + "/driver_override", "(null)\n");
    files_.link(directory + "/driver", "sys/bus/pci/drivers/" + driver);
  }
}

}  // namespace vfpass::crash
