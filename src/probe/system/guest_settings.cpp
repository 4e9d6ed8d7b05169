#include "system/guest_inventory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

constexpr std::size_t longestLimits = std::size_t{256} << 10U;
constexpr std::size_t maxOthers = 16;
constexpr std::uint64_t unlimited = UINT64_MAX;

/// RLIMIT_MEMLOCK in bytes.
struct Limit {
  std::optional<std::uint64_t> soft;
  std::optional<std::uint64_t> hard;
  std::string file;
};

Json valueOf(std::uint64_t bytes) { return bytes == unlimited ? Json(nullptr) : Json(bytes); }

Json toJson(const Limit& limit) {
  if (!limit.soft && !limit.hard) {
    return nullptr;
  }
  Json result{{"file", limit.file}};
  if (limit.soft) {
    result["soft"] = valueOf(limit.hard ? std::min(*limit.soft, *limit.hard) : *limit.soft);
  }
  if (limit.hard) {
    result["hard"] = valueOf(*limit.hard);
  }
  return result;
}

std::optional<std::uint64_t> scaled(std::uint64_t number, std::uint64_t unit) {
  return number > unlimited / unit ? std::optional(unlimited) : std::optional(number * unit);
}

/// limits.conf(5): KiB, or -1, `unlimited` or `infinity`.
std::optional<std::uint64_t> pamValue(const std::string& text) {
  if (text == "-1" || text == "unlimited" || text == "infinity") {
    return unlimited;
  }
  const auto number = parseNumber(text);
  return number ? scaled(*number, 1024) : std::nullopt;
}

/// limits.conf(5): `*` is the default for all users but root, who has no other limit than his own.
void readPamFile(const std::string& content, const std::string& file,
                 std::map<std::string, Limit>& limits) {
  for (const std::string& line : splitLines(content)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string domain;
    std::string type;
    std::string item;
    std::string text;
    if (!(words >> domain >> type >> item >> text) || item != "memlock" || domain == "root") {
      continue;
    }
    const auto value = pamValue(text);
    if (!value || (type != "soft" && type != "hard" && type != "-")) {
      continue;
    }
    Limit& limit = limits[domain];
    limit.soft = type != "hard" ? value : limit.soft;
    limit.hard = type != "soft" ? value : limit.hard;
    limit.file = file;
  }
}

/// pam_limits(8): limits.conf, then the files of limits.d in the order of their names. The last
/// line counts.
std::map<std::string, Limit> readPam(const SysfsReader& sysfs) {
  const std::string folder = "/etc/security/limits.d";
  std::vector<std::string> files{"/etc/security/limits.conf"};
  for (const std::string& name : sysfs.names(folder)) {
    if (name.ends_with(".conf")) {
      files.push_back(folder + "/" + name);
    }
  }
  std::map<std::string, Limit> limits;
  for (const std::string& file : files) {
    readPamFile(sysfs.bytes(file, longestLimits), file, limits);
  }
  return limits;
}

/// systemd-system.conf(5), systemd.syntax(7): `infinity`, or bytes with a suffix to the base 1024.
std::optional<std::uint64_t> systemdValue(std::string_view text) {
  constexpr std::string_view suffixes = "KMGTPE";
  text = trim(text);
  if (text == "infinity") {
    return unlimited;
  }
  std::uint64_t unit = 1;
  if (!text.empty() && text.back() == 'B') {
    text.remove_suffix(1);
  }
  if (const auto place = text.empty() ? std::string_view::npos : suffixes.find(text.back());
      place != std::string_view::npos) {
    unit <<= 10 * (place + 1);
    text.remove_suffix(1);
  }
  const auto number = parseNumber(trim(text));
  return number ? scaled(*number, unit) : std::nullopt;
}

void readSystemdFile(const std::string& content, const std::string& file, Limit& limit) {
  const std::string key = "DefaultLimitMEMLOCK";
  for (const std::string& line : splitLines(content)) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || trim(line.substr(0, equals)) != key) {
      continue;
    }
    const std::string value(trim(line.substr(equals + 1)));
    const auto colon = value.find(':');
    const auto soft = systemdValue(value.substr(0, colon));
    const auto hard = colon == std::string::npos ? soft : systemdValue(value.substr(colon + 1));
    if (soft && hard) {
      limit = {soft, hard, file};
    } else if (value.empty()) {
      limit = {};
    }
  }
}

/// systemd-system.conf(5): the first main file of these directories, then the drop-ins of all in
/// the order of their names, of which /etc hides those of the same name below. The last line
/// counts.
Limit readSystemd(const SysfsReader& sysfs, const std::string& name) {
  constexpr std::array folders{"/etc/systemd/", "/run/systemd/", "/usr/local/lib/systemd/",
                               "/usr/lib/systemd/"};
  std::string mainFile;
  std::map<std::string, std::string> dropIns;  // by name
  for (const std::string folder : folders) {
    if (mainFile.empty() && sysfs.exists(folder + name)) {
      mainFile = folder + name;
    }
    for (const std::string& each : sysfs.names(folder + name + ".d")) {
      if (each.ends_with(".conf")) {
        dropIns.emplace(each, folder + name + ".d/" + each);
      }
    }
  }
  Limit limit;
  readSystemdFile(sysfs.bytes(mainFile, longestLimits), mainFile, limit);
  for (const auto& [unused, file] : dropIns) {
    readSystemdFile(sysfs.bytes(file, longestLimits), file, limit);
  }
  return limit;
}

/// `MemTotal:  16316412 kB`
Json memoryBytes(const SysfsReader& sysfs) {
  for (const std::string& line : splitLines(sysfs.textOrEmpty("/proc/meminfo"))) {
    std::istringstream words(line);
    std::string key;
    std::string number;
    if (words >> key >> number && key == "MemTotal:") {
      const auto value = parseNumber(number);
      return value ? Json(*scaled(*value, 1024)) : Json(nullptr);
    }
  }
  return nullptr;
}

}  // namespace

nlohmann::json readMemoryLock(const SysfsReader& sysfs) {
  Json others = Json::array();
  Limit all;
  for (const auto& [domain, limit] : readPam(sysfs)) {
    if (domain == "*") {
      all = limit;
    } else if (Json known = toJson(limit); others.size() < maxOthers) {
      known["who"] = domain;
      others.push_back(known);
    }
  }
  return {{"login", toJson(all)},
          {"login_others", others},
          {"services", toJson(readSystemd(sysfs, "system.conf"))},
          {"user_services", toJson(readSystemd(sysfs, "user.conf"))},
          {"memory_bytes", memoryBytes(sysfs)}};
}

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
