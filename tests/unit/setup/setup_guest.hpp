#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "fake/fake_hypervisor.hpp"
#include "fake/local_agent.hpp"
#include "fake/temporary_folder.hpp"

namespace vfpass::setup {

/// A guest in a directory on this machine: its agent runs the real scripts and writes real files.
/// Its interfaces are files, which a fake `ip` changes. The lab tests use a real guest.
class SetupGuest {
 public:
  SetupGuest() {
    for (const char* folder : {"etc", "var/lib", "tools", "sys/class/net", "proc"}) {
      std::filesystem::create_directories(root / folder);
    }
    tool("ip", ipTool);
    tool("chown", "exit 0");  // tests run without root
    // Only these programs: the scripts must not reach a network manager of this machine.
    for (const char* name : {"cat", "chmod", "grep", "id", "mkdir", "mv", "readlink", "rm", "rmdir",
                             "sha256sum", "sleep", "stat", "sync", "uname"}) {
      std::filesystem::create_symlink(std::filesystem::path("/usr/bin") / name,
                                      root / "tools" / name);
    }
    agent.path = (root / "tools").string();
    agent.logs = root;
    hypervisor.agent = [this](const std::string& command) { return agent.answer(command); };
  }
  SetupGuest(const SetupGuest&) = delete;
  SetupGuest& operator=(const SetupGuest&) = delete;

  fake::FakeHypervisor hypervisor;

 private:
  fake::TemporaryFolder temporary_;

 public:
  std::filesystem::path root = temporary_.path();
  fake::LocalAgent agent;

  /// Adds a shell script as a program of the guest.
  void tool(const std::string& name, const std::string& text) {
    const auto path = root / "tools" / name;
    std::filesystem::remove(path);
    write("tools/" + name, "#!/bin/sh\nroot=" + root.string() + "\n" + text + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  void write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path, std::ios::binary) << content;
  }

  [[nodiscard]] std::string read(const std::string& path) const {
    std::ifstream stream(root / path, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

  [[nodiscard]] bool has(const std::string& path) const {
    return std::filesystem::exists(root / path);
  }

  void addNetdev(const std::string& name, const std::string& address, const std::string& function) {
    const std::string folder = "sys/class/net/" + name + "/";
    write(folder + "address", address + "\n");
    write(folder + "mtu", "1500\n");
    write(folder + "flags", "0x1002\n");
    write(folder + "addresses", "");
    write("proc/sys/net/ipv4/conf/" + name + "/arp_announce", "0\n");
    write("proc/sys/net/ipv4/conf/" + name + "/arp_ignore", "0\n");
    std::filesystem::create_directories(root / "sys/bus/pci/devices" / function);
    std::filesystem::create_symlink("../../../bus/pci/devices/" + function,
                                    root / folder / "device");
  }

  /// Everything that undo has to restore: files with their modes, and interface settings.
  [[nodiscard]] std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const std::string path = entry.path().lexically_relative(root).string();
      if (path.starts_with("tools") || path.starts_with("log")) {
        continue;
      }
      const auto mode = static_cast<unsigned>(entry.symlink_status().permissions());
      all[path] = std::to_string(mode) + " " +
                  (entry.is_regular_file() && !entry.is_symlink() ? read(path) : "");
    }
    return all;
  }

 private:
  // Implements the commands that the scripts use, with the kernel's errors.
  static constexpr const char* ipTool = R"sh(
net=$root/sys/class/net
case "$1 $2" in
"-o address")
  number=2
  for netdev in $net/*; do
    while read -r family address; do
      echo "$number: ${netdev##*/}    $family $address scope global ${netdev##*/}\\ valid_lft forever"
    done <$netdev/addresses
    number=$((number + 1))
  done ;;
"link set")
  case $5 in
  mtu) [ "$6" -le 9978 ] || { echo "Error: mtu greater than device maximum." >&2; exit 2; }
       echo "$6" >$net/$4/mtu ;;
  up) echo 0x1003 >$net/$4/flags ;;
  down) echo 0x1002 >$net/$4/flags ;;
  name) [ ! -e $net/$6 ] || { echo "RTNETLINK answers: File exists" >&2; exit 2; }
        mv $net/$4 $net/$6; mv $root/proc/sys/net/ipv4/conf/$4 $root/proc/sys/net/ipv4/conf/$6 ;;
  *) exit 1 ;;
  esac ;;
"address add")
  grep -q " $3\$" $net/$5/addresses && { echo "RTNETLINK answers: File exists" >&2; exit 2; }
  case $3 in *:*) echo "inet6 $3" ;; *) echo "inet $3" ;; esac >>$net/$5/addresses ;;
"address del")
  grep -q " $3\$" $net/$5/addresses || { echo "RTNETLINK answers: Cannot assign requested address" >&2; exit 2; }
  grep -v " $3\$" $net/$5/addresses >$net/$5/addresses.new
  mv $net/$5/addresses.new $net/$5/addresses ;;
*) exit 1 ;;
esac)sh";
};

}  // namespace vfpass::setup
