#include "vfpass/settings/propose_settings.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "setting_proposals.hpp"

namespace vfpass::settings {
namespace {

bool isProposed(const std::vector<DomainSetting>& settings, const std::string& name) {
  return std::ranges::any_of(settings, [&name](const DomainSetting& setting) {
    return setting.name == name && setting.edit;
  });
}

std::vector<GuestCell> cellsAfter(const Input& input, const Placement& placement,
                                  const std::vector<DomainSetting>& settings) {
  const bool made = isProposed(settings, "guest-cells");
  const bool placed = isProposed(settings, "memory-placement");
  std::vector<GuestCell> cells;
  for (const CellFacts& cell : input.domain.cells) {
    cells.push_back({cell.id, cell.hostNodes});
  }
  for (const PlacedCell& cell : placement.cells) {
    if (made) {
      cells.push_back({cell.id, {}});
    }
    for (GuestCell& each : cells) {
      if (placed && each.id == cell.id) {
        each.hostNodes.insert(static_cast<unsigned>(cell.node));
      }
    }
  }
  return cells;
}

}  // namespace

Proposal propose(const Input& input) {
  Proposal proposal;
  if (input.devices.empty()) {
    return proposal;
  }
  const Placement placement = choosePlacement(input);
  auto& settings = proposal.settings;
  proposeAddressSpace(input, settings);
  proposeFirmware(input, settings);
  proposeLargeBars(input, settings);
  proposeHardLimit(input, settings);
  proposeHugePages(input, placement, settings);
  proposePlacement(input, placement, settings);
  proposal.cells = cellsAfter(input, placement, settings);
  proposeCoherentGpus(input, settings);
  proposeCliques(input, proposal);
  return proposal;
}

const Device* functionOf(const Input& input, const GuestDevice& device) {
  return findFunction(input.topology, device.function);
}

std::vector<MemoryBar> barsOf(const Input& input, const GuestDevice& device) {
  const auto& all = device.vf ? input.capacity.vfBars : input.capacity.bars;
  const auto found = all.find(device.function);
  return found == all.end() ? std::vector<MemoryBar>() : found->second;
}

bool isGpu(const Input& input, const GuestDevice& device) {
  const Device* function = functionOf(input, device);
  return !device.vf && function != nullptr && function->role == FunctionRole::gpu;
}

bool hasGpus(const Input& input) {
  return std::ranges::any_of(input.devices,
                             [&input](const GuestDevice& device) { return isGpu(input, device); });
}

std::string amount(std::uint64_t bytes) {
  constexpr std::array<std::pair<std::uint64_t, const char*>, 4> units{
      {{tebibyte, " TiB"}, {gibibyte, " GiB"}, {mebibyte, " MiB"}, {kibibyte, " KiB"}}};
  for (const auto& [unit, name] : units) {
    if (bytes >= unit && bytes % unit == 0) {
      return std::to_string(bytes / unit) + name;
    }
  }
  return std::to_string(bytes) + " bytes";
}

std::string kibibyteElement(const std::string& name, std::uint64_t bytes) {
  return "<" + name + " unit='KiB'>" + std::to_string(bytes / kibibyte) + "</" + name + ">";
}

}  // namespace vfpass::settings
