#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vfpass::cli {

/// Sends SIGHUP to the libvirt daemons that run QEMU domains (virtqemud, libvirtd), so that they
/// look for hooks again. Never restarts one: a restart calls `reconnect` for every running VM.
/// Returns what was done, one line each; also when no daemon runs. `reloaded` gets the daemons'
/// names.
std::vector<std::string> reloadLibvirt(const std::filesystem::path& runDirectory = "/run",
                                       const std::filesystem::path& procDirectory = "/proc",
                                       std::vector<std::string>* reloaded = nullptr);

}  // namespace vfpass::cli
