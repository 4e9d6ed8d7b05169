#include "nccl_conf.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::setup {
namespace {

// NCCL accepts comments only with `#` in the first column. The markers identify the block in files
// that earlier runs wrote, so their text must not change.
constexpr std::string_view blockBegin =
    "# vfpass guest-setup: begin; the first line of a key counts, so these do\n";
constexpr std::string_view blockEnd = "# vfpass guest-setup: end\n";

std::string withoutBlock(const std::string& content) {
  const auto begin = content.find(blockBegin);
  const auto end = begin == std::string::npos ? begin : content.find(blockEnd, begin);
  if (end == std::string::npos || (begin != 0 && content[begin - 1] != '\n')) {
    return content;
  }
  return content.substr(0, begin) + content.substr(end + blockEnd.size());
}

std::string keyOf(const std::string& line) { return line.substr(0, line.find('=')); }

}  // namespace

std::vector<std::string> ncclLines(const NcclSettings& settings, const std::string& topologyFile) {
  std::vector<std::string> lines;
  const auto add = [&](const char* key, const std::optional<unsigned>& value) {
    if (value) {
      lines.push_back(std::string(key) + "=" + std::to_string(*value));
    }
  };
  add("NCCL_IB_GID_INDEX", settings.gidIndex);
  add("NCCL_IB_TC", settings.trafficClass);
  add("NCCL_IB_SL", settings.serviceLevel);
  add("NCCL_IB_QPS_PER_CONNECTION", settings.queuePairs);
  add("NCCL_IB_TIMEOUT", settings.timeout);
  for (const auto& [name, value] : settings.environment) {
    lines.push_back(name + "=" + value);
  }
  if (!topologyFile.empty()) {
    lines.push_back("NCCL_TOPO_FILE=" + topologyFile);
  }
  return lines;
}

std::string withNcclBlock(const std::string& content, const std::vector<std::string>& lines) {
  const std::string rest = withoutBlock(content);
  return lines.empty()
             ? rest
             : std::string(blockBegin) + join(lines, "\n") + "\n" + std::string(blockEnd) + rest;
}

std::vector<std::string> overriddenLines(const std::string& content,
                                         const std::vector<std::string>& lines) {
  std::vector<std::string> overridden;
  for (const std::string& line : splitLines(withoutBlock(content))) {
    const bool setting = !line.starts_with('#') && line.find('=') != std::string::npos;
    if (setting && std::ranges::any_of(lines, [&](const std::string& ours) {
          return keyOf(ours) == keyOf(line) && ours != line;
        })) {
      overridden.push_back(line);
    }
  }
  return overridden;
}

}  // namespace vfpass::setup
