#include "read_processors.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::inventory {
namespace {

constexpr std::size_t maskLimit = 4096;
constexpr std::uint64_t nodeLimit = 4096;

bool isMask(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef,") == std::string_view::npos;
}

unsigned smallNumber(std::string_view text, int base) {
  return static_cast<unsigned>(std::min<std::uint64_t>(parseNumber(text, base).value_or(0), 65535));
}

void takeLine(std::string_view key, std::string_view value, Processors& processors) {
  if (key == "vendor_id") {  // x86 only; s390 has it too, but no PCI Express switches
    processors.architecture = "x86_64";
    processors.vendor = value.substr(0, 64);
  } else if (key == "cpu family") {
    processors.family = smallNumber(value, 10);
  } else if (key == "model") {
    processors.model = smallNumber(value, 10);
  } else if (key == "CPU implementer") {
    processors.architecture = "arm64";
    processors.vendor = "ARM";
  } else if (key == "CPU part" && value.starts_with("0x")) {
    processors.model = smallNumber(value.substr(2), 16);
  } else if (key == "cpu" && value.starts_with("POWER")) {
    processors.architecture = "ppc64";
    processors.vendor = "IBM";
  }
}

void readModel(const host::Root& root, Processors& processors) {
  for (const std::string& line : splitLines(root.readText("proc/cpuinfo").value_or(""))) {
    const std::string_view all = line;
    const auto colon = all.find(':');
    if (trim(all).empty()) {
      break;  // the first processor is representative
    }
    if (colon != std::string_view::npos) {
      takeLine(trim(all.substr(0, colon)), trim(all.substr(colon + 1)), processors);
    }
  }
}

}  // namespace

Processors readProcessors(const host::Root& root) {
  constexpr std::string_view prefix = "node";
  const std::string folder = "sys/devices/system/node";
  Processors processors;
  readModel(root, processors);
  for (const std::string& name : root.list(folder, prefix)) {
    const auto number = parseNumber(std::string_view(name).substr(prefix.size()));
    if (!number || *number >= nodeLimit) {
      continue;
    }
    std::string mask = root.readText(folder + "/" + name + "/cpumap", maskLimit).value_or("");
    processors.nodes.push_back({static_cast<int>(*number), isMask(mask) ? mask : std::string{}});
  }
  std::sort(processors.nodes.begin(), processors.nodes.end(),
            [](const NumaNode& one, const NumaNode& other) { return one.number < other.number; });
  return processors;
}

}  // namespace vfpass::inventory
