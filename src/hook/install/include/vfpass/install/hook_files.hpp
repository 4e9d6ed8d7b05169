#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vfpass::install {

/// Where libvirt looks for hooks.
inline constexpr const char* libvirtHooksDirectory = "/etc/libvirt/hooks";

/// The paths of the hook program and of a hooks directory, both absolute, without a `/` at the end.
struct HookPlaces {
  std::filesystem::path hooksDirectory;
  std::filesystem::path binary;

  [[nodiscard]] std::filesystem::path folder() const { return hooksDirectory / "qemu.d"; }
  [[nodiscard]] std::filesystem::path link() const { return folder() / "vfpass"; }
  /// The only hook script of libvirt before 6.5; later releases run it first.
  [[nodiscard]] std::filesystem::path single() const { return hooksDirectory / "qemu"; }
  [[nodiscard]] bool areLibvirts() const { return hooksDirectory == libvirtHooksDirectory; }
};

/// The places that a user names, also as `hooks/` or `../hooks`.
HookPlaces placesFrom(const std::filesystem::path& hooksDirectory,
                      const std::filesystem::path& binary);

/// True if libvirt, starting now, would find any hook for its QEMU driver.
bool anyHookPresent(const HookPlaces& places);

/// Copies a program atomically: the target is either complete or unchanged.
void copyProgram(const std::filesystem::path& source, const std::filesystem::path& target);

/// Throws unless the program is a file that the kernel can load and run, and that only root or the
/// caller can write. libvirtd kills every running VM at its next start if a hook cannot be loaded.
void requireLoadable(const std::filesystem::path& binary);

/// Creates the directory and the link if they are missing; returns one line per action. Throws
/// (refused) if something else exists at the link's path.
std::vector<std::string> linkHook(const HookPlaces& places);

/// What linkHook() would do, one line per action. Throws as it does, and changes nothing.
std::vector<std::string> plannedLinks(const HookPlaces& places);

/// What the installation of a hook that needs a reload would do.
struct PlannedReload {
  std::string text;
  bool isChange = false;  ///< it would reload a daemon
};

PlannedReload plannedReload(const HookPlaces& places, bool noReload);

/// Removes the link; the directory stays. Throws (refused) if the link is not ours.
std::vector<std::string> unlinkHook(const HookPlaces& places);

/// Sends SIGHUP to the libvirt daemons that run QEMU domains (virtqemud, libvirtd), so that they
/// look for hooks again. Never restarts one: a restart calls `reconnect` for every running VM.
/// Returns one line per action, or one line if no daemon is running. `reloaded` receives the names
/// of the reloaded daemons.
std::vector<std::string> reloadLibvirt(const std::filesystem::path& runDirectory = "/run",
                                       const std::filesystem::path& procDirectory = "/proc",
                                       std::vector<std::string>* reloaded = nullptr);

}  // namespace vfpass::install
