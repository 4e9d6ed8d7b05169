#include "vfpass/base/kernel_record.hpp"

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

}  // namespace vfpass
