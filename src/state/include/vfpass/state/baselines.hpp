#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass::state {

/// Durably saves the baseline of this PF (JSON text) as `baselines/ADDRESS.json` in the state
/// directory, for root only. Replaces an earlier one. The caller holds the PF's lock
/// (locks.hpp): the draft has one name for each PF. Throws Error.
void keepBaseline(const std::filesystem::path& stateDirectory, const PciAddress& pf,
                  const std::string& text);

/// Larger files are not read.
inline constexpr std::size_t largestBaseline = std::size_t{1} << 20U;

/// The text of each baseline that can be read, in the order of the addresses.
std::vector<std::string> keptBaselines(const std::filesystem::path& stateDirectory);

}  // namespace vfpass::state
