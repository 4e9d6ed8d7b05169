#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "firmware_settings.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::doctor {

/// Runs a command within a time; nullopt: it cannot be run, or did not finish.
using RunProgram = std::function<std::optional<std::string>(const std::vector<std::string>& command,
                                                            std::chrono::milliseconds deadline)>;

/// The settings that doctor knows, as mstconfig or mlxconfig (`program`) shows them. It names the
/// settings, because a query without names reads all of a card, with one firmware command each, and
/// takes seconds. The program refuses a query that names a setting which the card does not have:
/// that name is left out and the query repeated, and if the refusal names none, everything is
/// queried. Empty if the program shows nothing within `deadline`.
FirmwareSettings queryCard(const std::string& program, const PciAddress& card,
                           std::chrono::milliseconds deadline, const RunProgram& run);

}  // namespace vfpass::doctor
