#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass::doctor {

/// One setting of a card's firmware, as `mstconfig -e -d CARD query` and mlxconfig show it:
/// `True(1)`, `ETH(2)`, `16`.
struct FirmwareSetting {
  std::string current;  ///< empty if this version of the program does not show it
  std::string nextBoot;
};

using FirmwareSettings = std::map<std::string, FirmwareSetting>;

/// Names of the few settings that doctor checks.
std::vector<std::string> firmwareSettingNames();

/// Those settings. Ignores other output and anything that does not look like a
/// value.
FirmwareSettings firmwareSettingsIn(std::string_view output);

/// To and from the form that captured trees store: a line `NAME CURRENT NEXT` for each setting.
std::string toText(const FirmwareSettings& settings);
FirmwareSettings firmwareSettingsFrom(std::string_view text);

/// `True(1)` is 1, `16` is 16.
std::optional<std::uint64_t> numberOf(const std::string& value);

/// The value that one setting must have.
struct FirmwareNeed {
  std::string name;
  std::uint64_t value = 0;
  bool orMore = false;

  [[nodiscard]] bool meets(const std::string& text) const;
  /// `NUM_OF_VFS>=4`
  [[nodiscard]] std::string text() const;
  /// `NUM_OF_VFS=16`
  [[nodiscard]] std::string assignment() const;
};

/// A card's settings compared with the needed values.
struct FirmwareJudgement {
  std::vector<std::string> seen;
  std::vector<std::string> toSet;  ///< `SRIOV_EN=1`
  bool pending = false;            ///< correct only after the next boot
  bool unknown = false;            ///< the program shows no current value
};

FirmwareJudgement judge(const std::vector<FirmwareNeed>& needs, const FirmwareSettings& settings);

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
