#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "vfpass/imported_mapping.hpp"
#include "view.hpp"

namespace vfpass::doctor {

// The checks for other programs that create or configure VFs; those for netplan and systemd are
// with the table.
void checkNetworkManager(const View& view, Results& results);
std::string withoutManagedVfs(const View& view);  ///< why checkDhcp does not apply
void checkDhcp(const View& view, Results& results);
void checkBootScripts(const View& view, Results& results);

/// Paths of the files in these directories. One in an earlier directory hides those of the same
/// name in later ones.
std::vector<std::string> filesIn(const View& view, std::initializer_list<std::string_view> folders);

/// The beginning of a remedy for a file, such as `in /etc/netplan/a.yaml, `. Packages and programs
/// write files outside of etc again: those are overridden by a copy in `folder`, under `name`.
std::string editing(const std::string& file, const std::string& folder, const std::string& name);

/// A line of a file that runs, or is applied, at boot.
struct BootLine {
  std::string file;  ///< absolute
  std::size_t line = 0;
  std::string text;  ///< what it sets: `sriov_numvfs`, or the words of an `ip link` command
};

/// The lines that boot-scripts finds: those that set a VF count.
std::vector<BootLine> vfCountLines(const View& view);

/// The commands `ip link set NETDEV vf NUMBER ...` of the same files. None in a captured tree,
/// which does not have them.
std::vector<BootLine> vfSettingLines(const host::Root& root);

/// The whole line of a file; empty if it cannot be read.
std::string lineOfFile(const host::Root& root, const BootLine& line);

// vf_count_writers.cpp

/// The languages in which boot files write to sysfs.
enum class BootLanguage { shell, udev, unit, tmpfiles, sysfs, modprobe, yaml };

/// A line that sets the VF count of some PF.
struct VfCountWriter {
  std::size_t line = 0;  ///< from 1
  std::string setting;   ///< `sriov_numvfs`, `mlx5_num_vfs`, `num_vfs=8`, `numvfs: 8`

  auto operator<=>(const VfCountWriter&) const = default;
};

/// The lines that write a VF count. Lines that only read or match it do not count. Where that is
/// not clear, such as for a path in a variable, the line counts.
std::vector<VfCountWriter> vfCountWriters(BootLanguage language, std::string_view text);

/// The simple commands `ip link set ... vf ...` of a text, with the numbers of their lines.
std::vector<VfCountWriter> vfSetters(BootLanguage language, std::string_view text);

/// The programs that these lines start, without their arguments: absolute paths, and words that may
/// be names of programs.
std::vector<std::string> startedPrograms(BootLanguage language, std::string_view text);

// The readers behind bootPolicies().

std::vector<BootPolicy> systemdPolicies(const View& view);
std::vector<BootPolicy> networkManagerPolicies(const View& view);
std::vector<BootPolicy> netplanPolicies(const View& view);
std::vector<BootPolicy> scriptPolicies(const View& view);

/// How a file selects the devices that it configures. An empty member selects all.
struct DeviceMatch {
  std::vector<std::string> names;    ///< patterns of netdevs; one that begins with `!` excludes
  std::vector<std::string> macs;     ///< of netdevs
  std::vector<std::string> paths;    ///< patterns of udev's ID_PATH: `pci-0000:3b:00.0`
  std::vector<std::string> drivers;  ///< patterns
  bool unknown = false;              ///< has a condition that is none of these

  [[nodiscard]] bool empty() const {
    return names.empty() && macs.empty() && paths.empty() && drivers.empty();
  }
};

/// The PFs that it selects, as numbers in the topology. Conditions that are unknown count as met.
std::vector<std::size_t> matchingPfs(const View& view, const DeviceMatch& match);

/// The whole text of a configuration file, also what knownSettings() leaves out: passwords, so only
/// settings of PFs and VFs may leave the reader.
std::string wholeText(const View& view, const std::string& path);

/// `yes`, `true`, `on`, `1`, and their opposites; nullopt for anything else.
std::optional<bool> truthOf(std::string_view text);

/// A whole number that fits; nullopt for anything else.
std::optional<unsigned> countOf(std::string_view text);

std::optional<std::uint16_t> vlanIdOf(std::string_view text);

/// One policy for each of these PFs; one without a PF if there are none.
void addForEach(const View& view, const std::vector<std::size_t>& pfs, const BootPolicy& policy,
                std::vector<BootPolicy>& policies);

/// The words between these separators, without empty ones.
std::vector<std::string> splitWords(std::string_view text, std::string_view separators = " \t");

}  // namespace vfpass::doctor
