#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vfpass::cli {

/// Where the hook's program and libvirt's folder of hooks are.
struct HookPlaces {
  std::filesystem::path hooksDirectory;
  std::filesystem::path binary;

  [[nodiscard]] std::filesystem::path folder() const { return hooksDirectory / "qemu.d"; }
  [[nodiscard]] std::filesystem::path link() const { return folder() / "vfpass"; }
  /// The one script of libvirt before 6.5, which still runs first.
  [[nodiscard]] std::filesystem::path single() const { return hooksDirectory / "qemu"; }
};

/// True when libvirt, starting now, would find any hook for its QEMU driver.
bool anyHookPresent(const HookPlaces& places);

/// Copies a program so that, whatever happens meanwhile, the target is whole or as it was.
void copyProgram(const std::filesystem::path& source, const std::filesystem::path& target);

/// Throws unless the program is a file that the kernel can load and run, and that nobody but its
/// owner and root can change. libvirtd kills every running VM at its next start when a hook cannot
/// be loaded.
void requireLoadable(const std::filesystem::path& binary);

/// Makes the folder and the link where they are missing; returns what was done, one line each.
/// Throws (refused) when something else stands where the link belongs.
std::vector<std::string> linkHook(const HookPlaces& places);

/// Removes the link if it is ours; the folder stays. Throws (refused) when it is not.
std::vector<std::string> unlinkHook(const HookPlaces& places);

}  // namespace vfpass::cli
