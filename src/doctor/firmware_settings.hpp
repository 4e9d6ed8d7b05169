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
  std::string current;  ///< empty if this version of the program does not show it
  std::string nextBoot;
};

using FirmwareSettings = std::map<std::string, FirmwareSetting>;

/// The few settings that doctor checks. Ignores other output and anything that does not look like a
/// value.
FirmwareSettings firmwareSettingsIn(std::string_view output);

/// To and from the form that captured trees store: a line `NAME CURRENT NEXT` for each setting.
std::string toText(const FirmwareSettings& settings);
FirmwareSettings firmwareSettingsFrom(std::string_view text);

/// `True(1)` is 1, `16` is 16.
std::optional<std::uint64_t> numberOf(const std::string& value);

}  // namespace vfpass::doctor
