#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "vfpass/host/recording.hpp"

namespace vfpass::capture {

/// Path below the tree's root, and the entry at that path.
using CapturedTree = std::map<std::string, host::RecordedEntry>;

/// The part of a recording that a snapshot keeps. Of /proc: the first processor of cpuinfo, the
/// kernel version, the kernel arguments that concern devices, and the ARP settings; the rest
/// describes the host's processes and mounts. Of text files outside sysfs: the settings that doctor
/// looks for, because such files can contain passwords. Link targets are kept unchanged: those of
/// sysfs are relative.
CapturedTree keptOf(const host::Recording& recording);

/// Writes the tree to a new or empty directory (see CapturedFolder). Throws Error if the directory
/// is not empty or a write fails; files written so far remain.
void writeFolder(const CapturedTree& tree, const std::filesystem::path& folder);

/// Writes the tree to a new file. The same tree gives the same bytes: entries are sorted by name
/// and have no times and owners.
void writeTar(const CapturedTree& tree, const std::filesystem::path& file);

}  // namespace vfpass::capture
