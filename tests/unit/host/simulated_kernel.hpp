#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hosts/sysfs_tree.hpp"
#include "sysfs/kernel_write.hpp"

namespace vfpass::host {

/// Accepts writes to a handmade tree and changes the tree as the kernel would.
class SimulatedKernel final : public KernelWriter {
 public:
  explicit SimulatedKernel(const hosts::SysfsTree& tree) : tree_(tree) {}

  std::map<std::string, int> refusals;    ///< by driver: errno of its probe
  std::map<std::string, int> fileErrors;  ///< by file name: errno of the write
  /// `file=text` of writes that take effect while their helper process is killed.
  std::set<std::string> unanswered;
  std::string hangs;             ///< a file name whose write never returns
  std::string exhausted;         ///< an entry of the log whose write finds no memory
  std::string ineffective;       ///< a file name whose write succeeds and changes nothing
  unsigned appearing = 1000;     ///< maximum number of VFs that the driver creates
  std::string logged;            ///< what /dev/kmsg has after a write to sriov_numvfs
  std::vector<std::string> log;  ///< `file=text` in order
  std::map<std::string, std::chrono::milliseconds> deadlinesOf;  ///< by entry of the log

  void write(const std::string& path, std::string_view text, const PciAddress& device,
             std::chrono::milliseconds deadline) override {
    const std::string object = toString(device);
    const std::string name = path.substr(path.rfind('/') + 1);
    const std::string value(text);
    log.push_back(name + "=" + value);
    deadlinesOf[log.back()] = deadline;
    if (name == "sriov_numvfs" && value != "0" && !logged.empty()) {
      tree_.file("dev/kmsg", tree_.content("dev/kmsg") + logged);
    }
    if (exhausted == log.back()) {
      throw std::bad_alloc();
    }
    if (name == hangs) {
      throw TimeoutError(object + ": hangs");
    }
    if (fileErrors.contains(name)) {
      throw WriteError(object + ": refused", "", fileErrors[name]);
    }
    if (name == ineffective) {
      return;
    }
    if (name == "unbind") {
      tree_.remove(tree_.folderOf(value) + "/driver");
    } else if (name == "bind") {
      bind(driverOf(path), value);
    } else if (name == "sriov_numvfs") {
      setCount(static_cast<unsigned>(std::stoul(value)));
    } else {
      tree_.file(path, name == "driver_override" && value == "\n" ? "(null)\n" : value);
    }
    if (unanswered.contains(name + "=" + value)) {
      throw WriteError(object + ": no answer", "", ECHILD);
    }
  }

  std::vector<std::exception_ptr> writeTogether(const std::vector<DeviceWrite>& writes,
                                                std::chrono::milliseconds deadline) override {
    std::vector<std::exception_ptr> failures(writes.size());
    for (std::size_t i = 0; i < writes.size(); ++i) {
      try {
        write(writes[i].path, writes[i].text, writes[i].device, deadline);
      } catch (const Error&) {
        failures[i] = std::current_exception();
      }
    }
    return failures;
  }

  std::string read(const std::string& path, const PciAddress& /*device*/,
                   std::chrono::milliseconds) override {
    return tree_.content(path);
  }

 private:
  static std::string driverOf(const std::string& path) {
    const auto directory = path.substr(0, path.rfind('/'));
    return directory.substr(directory.rfind('/') + 1);
  }

  void bind(const std::string& driver, const std::string& address) {
    if (tree_.content(tree_.folderOf(address) + "/driver_override") != driver + "\n") {
      throw WriteError(address + ": no match", "", ENODEV);
    }
    if (refusals.contains(driver)) {
      throw WriteError(address + ": probe failed", "", refusals[driver]);
    }
    tree_.bind(address, driver);
  }

  void setCount(unsigned count) {
    const std::string pf = tree_.folderOf("0000:01:00.0");
    for (unsigned index = 0; index < 7; ++index) {
      tree_.remove(pf + "/virtfn" + std::to_string(index));
    }
    for (unsigned index = 0; index < std::min(count, appearing); ++index) {
      tree_.vf(index);
    }
  }

  const hosts::SysfsTree& tree_;
};

}  // namespace vfpass::host
