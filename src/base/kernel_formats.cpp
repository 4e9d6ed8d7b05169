#include "vfpass/base/kernel_formats.hpp"

#include <algorithm>
#include <array>

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

// `name=value`, as the environment of init is logged, one line for each (init/main.c,
// run_init_process).
bool isAssignment(std::string_view text) {
  const auto end = text.find_first_of("= :");
  return end != std::string_view::npos && end != 0 && text[end] == '=';
}

}  // namespace

// The first number is the priority with the facility in its upper bits, which is 0 only for the
// kernel itself (devkmsg_write in kernel/printk/printk.c).
std::string_view kernelText(std::string_view line) {
  constexpr unsigned priorities = 8;
  const auto comma = line.find(',');
  const auto semicolon = line.find(';');
  if (comma == std::string_view::npos || semicolon == std::string_view::npos || comma > semicolon) {
    return {};
  }
  const auto priority = parseNumber(line.substr(0, comma));
  return priority && *priority < priorities ? line.substr(semicolon + 1) : std::string_view{};
}

// arch/x86/kernel/setup.c; init/main.c (start_kernel, print_unknown_bootoptions, do_early_param);
// kernel/params.c; kernel/module/main.c (unknown_module_param_cb, which only ignores the parameter,
// and the taint of a module without a signature). "iommu: Default domain type: ... (set via kernel
// command line)" is a message of its own. mlx5_pci_vsc_init (mlx5/core/lib/pci_vsc.c) misses a
// capability that only dumps of the firmware need.
bool explainsNothing(std::string_view text) {
  constexpr std::array<std::string_view, 5> beginnings{
      "command line:", "kernel command line:", "unknown kernel command line parameters",
      "malformed early option", "setting dangerous option"};
  const std::string lower = toLower(trim(text));
  const auto has = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
  return std::ranges::any_of(beginnings,
                             [&](std::string_view each) { return lower.starts_with(each); }) ||
         isAssignment(lower) || (has(": unknown parameter '") && lower.ends_with("ignored")) ||
         has(": module verification failed:") || has("mlx5_pci_vsc_init") || has("mlx5_vsc_init");
}

namespace {

constexpr unsigned highest = 1023;

std::optional<unsigned> parseNode(std::string_view text) {
  const auto value = parseNumber(trim(text));
  return value && *value <= highest ? std::optional(static_cast<unsigned>(*value)) : std::nullopt;
}

bool addPart(std::string_view part, std::set<unsigned>& nodes) {
  if (part.starts_with('^')) {
    const auto node = parseNode(part.substr(1));
    return node && nodes.erase(*node) == 1;
  }
  const auto dash = part.find('-');
  const auto first = parseNode(part.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parseNode(part.substr(dash + 1));
  if (!first || !last || *last < *first) {
    return false;
  }
  for (unsigned node = *first; node <= *last; ++node) {
    nodes.insert(node);
  }
  return true;
}

}  // namespace

std::optional<std::set<unsigned>> parseNodeSet(std::string_view text) {
  std::set<unsigned> nodes;
  text = trim(text);
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    if (!addPart(trim(text.substr(0, end)), nodes)) {
      return std::nullopt;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return nodes;
}

std::set<unsigned> cpusInMask(std::string_view mask) {
  std::set<unsigned> cpus;
  unsigned cpu = 0;
  for (auto digit = mask.rbegin(); digit != mask.rend(); ++digit) {
    if (*digit == ',') {
      continue;
    }
    const auto value = parseNumber(std::string_view(&*digit, 1), 16).value_or(0);
    for (unsigned bit = 0; bit < 4 && cpu <= highest; ++bit, ++cpu) {
      if ((value >> bit & 1U) != 0) {
        cpus.insert(cpu);
      }
    }
  }
  return cpus;
}

std::string formatNodeSet(const std::set<unsigned>& nodes) {
  std::string text;
  for (auto node = nodes.begin(); node != nodes.end();) {
    const unsigned first = *node;
    unsigned last = first;
    while (++node != nodes.end() && *node == last + 1) {
      last = *node;
    }
    text += (text.empty() ? "" : ",") + std::to_string(first);
    text += last == first ? "" : "-" + std::to_string(last);
  }
  return text;
}

}  // namespace vfpass
