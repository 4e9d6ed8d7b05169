#pragma once

#include <string>
#include <vector>

#include "vf_count_writers.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::doctor {

/// A file that runs, or is applied, at boot or when a device appears.
struct BootFile {
  std::string path;  ///< relative to the root
  BootLanguage language = BootLanguage::shell;
};

/// The files of this host. Those that a file of the same name in another directory hides
/// (systemd.unit(5), udev(7), tmpfiles.d(5), modprobe.d(5)) are left out.
std::vector<BootFile> bootFiles(const host::Root& root);

}  // namespace vfpass::doctor
