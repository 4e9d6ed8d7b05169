#pragma once

#include <filesystem>
#include <string>

namespace vfpass::session {

/// Options of every command.
struct GlobalOptions {
  std::filesystem::path configDirectory = "/etc/vfpass";
  std::filesystem::path stateDirectory = "/var/lib/vfpass";
  std::filesystem::path runDirectory = "/run/vfpass";
  std::string connect;  ///< libvirt URI; empty: LIBVIRT_DEFAULT_URI, otherwise qemu:///system
  std::filesystem::path sysroot = "/";
  bool json = false;
  bool quiet = false;
  int verbosity = 0;
  std::string color = "auto";  ///< auto, always, never
};

}  // namespace vfpass::session
