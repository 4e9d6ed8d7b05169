#include "system/nccl_settings.hpp"

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

constexpr const char* configuration = "/etc/nccl.conf";
constexpr std::size_t longestConfiguration = std::size_t{64} << 10U;

/// NCCL (src/misc/param.cc) reads a number as strtoll() with base 0 does, ignores what follows it,
/// and takes its default if there is none. A negative index leaves the choice to NCCL.
std::optional<long long> numberAsNccl(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 0);
  const bool read = errno == 0 && end != text.c_str() && number >= 0;
  return read ? std::optional(number) : std::nullopt;
}

/// The first line of a key counts, because NCCL sets each with setenv(..., 0). Only `#` in the
/// first column begins a comment, and spaces belong to the key.
std::optional<long long> gidIndexIn(const std::string& content) {
  const std::string key = "NCCL_IB_GID_INDEX=";
  for (const std::string& line : splitLines(content)) {
    if (line.starts_with(key)) {
      return numberAsNccl(line.substr(key.size()));
    }
  }
  return std::nullopt;
}

}  // namespace

nlohmann::json readNcclSettings(const SysfsReader& sysfs) {
  const auto index = gidIndexIn(sysfs.bytes(configuration, longestConfiguration));
  return {{"found", sysfs.exists(configuration)},
          {"gid_index", index ? nlohmann::json(*index) : nlohmann::json(nullptr)}};
}

}  // namespace vfpass::probe
