#include "vfpass/host/reset_methods.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestMethod = 32;
constexpr std::size_t methodLimit = 16;

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty() && words.size() < methodLimit) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) {
      words.push_back(printable(std::string(text.substr(0, std::min(end, longestMethod)))));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

std::optional<std::vector<std::string>> readResetMethods(const Root& root,
                                                         const std::string& directory) {
  if (const auto text = root.readText(directory + "/reset_method")) {
    return wordsOf(*text);
  }
  // Neither file exists when the kernel has no reset method (pci_dev_reset_attr_is_visible and
  // pci_dev_reset_method_attr_is_visible, drivers/pci/pci.c). A snapshot has no write-only files.
  if (root.isLive() && root.exists(directory) && !root.exists(directory + "/reset")) {
    return std::vector<std::string>{};
  }
  return std::nullopt;
}

// The kernel only offers a secondary bus reset (`bus`, `cxl_bus`) for the sole function on a bus.
bool resetsAlone(const std::vector<std::string>& methods) {
  return std::ranges::any_of(
      methods, [](const std::string& method) { return method != "bus" && method != "cxl_bus"; });
}

}  // namespace vfpass::host
