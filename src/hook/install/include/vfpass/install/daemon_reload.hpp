#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vfpass::install {

/// Sends SIGHUP to the libvirt daemons that run QEMU domains (virtqemud, libvirtd), so that they
/// look for hooks again. Never restarts one: a restart calls `reconnect` for every running VM.
/// Returns one line per action, or one line if no daemon is running. `reloaded` receives the names
/// of the reloaded daemons.
std::vector<std::string> reloadLibvirt(const std::filesystem::path& runDirectory = "/run",
                                       const std::filesystem::path& procDirectory = "/proc",
                                       std::vector<std::string>* reloaded = nullptr);

}  // namespace vfpass::install
