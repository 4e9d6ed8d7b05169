#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/imported_mapping.hpp"
#include "view.hpp"

namespace vfpass::doctor {

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
