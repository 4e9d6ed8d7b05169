#include "vfpass/settings/propose_settings.hpp"

#include <algorithm>

#include "parts.hpp"

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
  proposeCliques(input, proposal);
  return proposal;
}

}  // namespace vfpass::settings
