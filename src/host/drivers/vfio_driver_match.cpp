#include "vfpass/host/vfio_driver_match.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

#include "vfpass/base/driver_name.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t aliasFileLimit = std::size_t{4} << 20U;
constexpr std::string_view linePrefix = "alias vfio_pci:";
constexpr std::string_view standard = "vfio-pci";

struct Alias {
  std::string pattern;
  std::string driver;
};

// `alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci`. Module names have
// underscores; of the drivers only vfio-pci has a hyphen.
std::optional<Alias> aliasIn(std::string_view line) {
  if (!line.starts_with(linePrefix)) {
    return std::nullopt;
  }
  line.remove_prefix(linePrefix.size());
  const auto space = line.find(' ');
  if (space == std::string_view::npos) {
    return std::nullopt;
  }
  std::string module(trim(line.substr(space + 1)));
  return Alias{std::string(line.substr(0, space)),
               module == "vfio_pci" ? std::string(standard) : std::move(module)};
}

}  // namespace

// The same rule as libvirt 10.0 with managed='yes' (virPCIDeviceFindBestVFIOVariant).
std::string bestVfioDriver(std::string_view modalias, std::string_view aliases) {
  constexpr std::string_view bus = "pci:";
  if (!modalias.starts_with(bus)) {
    return std::string(standard);
  }
  const std::string device(modalias.substr(bus.size()));
  std::string best(standard);
  std::optional<std::ptrdiff_t> fewest;
  while (!aliases.empty()) {
    const auto end = std::min(aliases.find('\n'), aliases.size());
    const auto alias = aliasIn(aliases.substr(0, end));
    aliases.remove_prefix(std::min(end + 1, aliases.size()));
    if (!alias || !isVfioDriver(alias->driver) ||
        ::fnmatch(alias->pattern.c_str(), device.c_str(), 0) != 0) {
      continue;
    }
    const auto wildcards = std::ranges::count(alias->pattern, '*');
    if (!fewest || wildcards < *fewest) {
      fewest = wildcards;
      best = alias->driver;
    }
  }
  return best;
}

std::string bestVfioDriver(const Root& root, const std::string& directory) {
  const auto modalias = root.readText(directory + "/modalias");
  if (!modalias) {
    return std::string(standard);
  }
  // Keep modules.alias out of snapshots.
  const Root unrecorded;
  const Root& modules = root.isLive() ? unrecorded : root;
  const std::string release = modules.readText("proc/sys/kernel/osrelease").value_or("");
  const bool valid = !release.empty() && release.find('/') == std::string::npos;
  const auto aliases =
      valid ? modules.readText("lib/modules/" + release + "/modules.alias", aliasFileLimit)
            : std::nullopt;
  return bestVfioDriver(*modalias, aliases.value_or(""));
}

}  // namespace vfpass::host
