#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "vfpass/host/recording.hpp"

namespace vfpass::cli {

/// Path below the tree's root, and what is to be there.
using CapturedTree = std::map<std::string, host::RecordedEntry>;

/// What a snapshot keeps of a recording: of /proc only cpuinfo's first processor, the kernel's
/// version and arguments about devices, and ARP settings, because the rest is about the host's
/// processes and mounts; of text files outside sysfs only the settings that doctor looks for,
/// because they can hold passwords. Link targets stay as they are: those of sysfs are relative.
CapturedTree keptOf(const host::Recording& recording);

/// Into a new or empty folder (see CapturedFolder). Throws Error: for a folder with something in
/// it, and when a write fails; what was written until then stays.
void writeFolder(const CapturedTree& tree, const std::filesystem::path& folder);

/// Into a new file, the same bytes for the same tree: by name, without times and owners.
void writeTar(const CapturedTree& tree, const std::filesystem::path& file);

}  // namespace vfpass::cli
