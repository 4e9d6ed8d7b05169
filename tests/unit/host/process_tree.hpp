#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {

constexpr std::uint64_t ourNetwork = 4026531840;
constexpr std::uint64_t ourMounts = 4026531841;

/// A SysfsTree with a handmade /proc.
class ProcessTree : public hosts::SysfsTree {
 public:
  ProcessTree() {
    process("1", "systemd");
    process("self", "vfpass");
    raw("proc/self/ns/pid", "pid:[4026531836]");
  }

  /// A process of root in these namespaces, without open files.
  void process(const std::string& id, const std::string& name, std::uint64_t network = ourNetwork,
               std::uint64_t mounts = ourMounts) const {
    const std::string directory = "proc/" + id;
    file(directory + "/comm", name + "\n");
    std::filesystem::create_directories(path() / (directory + "/fd"));
    raw(directory + "/ns/net", "net:[" + std::to_string(network) + "]");
    raw(directory + "/ns/mnt", "mnt:[" + std::to_string(mounts) + "]");
  }
  void open(const std::string& id, const std::string& descriptor, const std::string& target) const {
    raw("proc/" + id + "/fd/" + descriptor, target);
  }
  /// The process has a call on this device pending (CallMark).
  void pendingCall(const std::string& id, const std::string& name) const {
    process(id, name);
    open(id, "2", "/memfd:" + name + " (deleted)");
  }
  void commandLine(const std::string& id, std::initializer_list<std::string> arguments) const {
    std::string text;
    for (const std::string& argument : arguments) {
      text += argument + '\0';
    }
    file("proc/" + id + "/cmdline", text);
  }

  /// A link with exactly this target.
  void raw(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::filesystem::create_symlink(target, path() / name);
  }
};

}  // namespace vfpass::host
