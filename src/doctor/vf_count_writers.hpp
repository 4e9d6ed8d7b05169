#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::doctor {

/// The languages in which boot files write to sysfs.
enum class BootLanguage { shell, udev, unit, tmpfiles, sysfs, modprobe, yaml };

/// A line that sets the VF count of some PF.
struct VfCountWriter {
  std::size_t line = 0;  ///< from 1
  std::string setting;   ///< `sriov_numvfs`, `mlx5_num_vfs`, `num_vfs=8`, `numvfs: 8`
};

/// The lines that write a VF count. Lines that only read or match it do not count. Where that is
/// not clear, such as for a path in a variable, the line counts.
std::vector<VfCountWriter> vfCountWriters(BootLanguage language, std::string_view text);

/// The programs that these lines start, without their arguments: absolute paths, and words that may
/// be names of programs.
std::vector<std::string> startedPrograms(BootLanguage language, std::string_view text);

}  // namespace vfpass::doctor
