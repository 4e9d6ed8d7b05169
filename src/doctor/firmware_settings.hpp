#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace vfpass::doctor {

/// One setting of a card's firmware, as `mstconfig -e -d CARD query` and mlxconfig show it:
/// `True(1)`, `ETH(2)`, `16`.
struct FirmwareSetting {
  std::string current;  ///< empty: this version of the program does not show it
  std::string nextBoot;
};

using FirmwareSettings = std::map<std::string, FirmwareSetting>;

/// The few settings that doctor looks at; anything else in the output, and whatever does not look
/// like a value, is left out.
FirmwareSettings firmwareSettingsIn(std::string_view output);

/// One line for each, `NAME CURRENT NEXT`, and back: what a captured tree keeps.
std::string toText(const FirmwareSettings& settings);
FirmwareSettings firmwareSettingsFrom(std::string_view text);

/// `True(1)` is 1, `16` is 16.
std::optional<std::uint64_t> numberOf(const std::string& value);

}  // namespace vfpass::doctor
