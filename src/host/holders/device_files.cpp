#include "holders/device_files.hpp"

#include <algorithm>
#include <string>

#include "holders/device_file_uses.hpp"
#include "holders/gpu_use.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestFile = 64;

bool isGpuOrSwitch(const FunctionFacts& function) {
  constexpr std::uint32_t display = 0x03;
  constexpr std::uint32_t accelerator = 0x12;
  return function.baseClass == display || function.baseClass == accelerator ||
         function.driver == "nvidia-nvswitch";
}

Holder holderOf(const Root& root, const FunctionFacts& function, const DeviceFileUse& use) {
  const std::string open =
      " has its device file " + printable(use.file.substr(0, longestFile)) + " open";
  if (isGpuOrSwitch(function)) {
    const GpuUse user = gpuUseOf(root, *use.process);
    return {HolderKind::gpu, function.address, user.who + open, user.remedy, std::nullopt};
  }
  return {HolderKind::unknown, function.address, describe(*use.process) + open,
          "stop that program, or accept it with `allow: [unknown-holder]` in the mapping",
          std::nullopt};
}

}  // namespace

std::vector<Holder> deviceFileHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                      const std::vector<Process>& processes) {
  std::vector<DrivenFunction> driven;
  for (const FunctionFacts& function : functions) {
    driven.push_back({function.address, function.driver});
  }
  std::vector<Holder> holders;
  for (const DeviceFileUse& use : deviceFileUses(root, driven, processes)) {
    const auto function = std::ranges::find(functions, use.function, &FunctionFacts::address);
    holders.push_back(holderOf(root, *function, use));
  }
  return holders;
}

}  // namespace vfpass::host
