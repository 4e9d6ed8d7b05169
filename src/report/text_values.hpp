#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

#include "vfpass/finding.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/report/table.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass::report {

/// Shown in tables for an unobservable value, as opposed to "none".
inline constexpr const char* notObservable = "?";
/// Shown in tables for "none".
inline constexpr const char* nothing = "-";

std::string textOrNothing(const std::string& text);
std::string onOff(const std::optional<bool>& value);
/// `100`, `100 qos 3`, `100 802.1ad`, `-` for none.
std::string vlanText(const std::optional<Vlan>& vlan);
std::string linkText(const std::optional<LinkState>& state);
/// The MAC, or the port GUID of an InfiniBand VF.
std::string hardwareAddress(const VfSettings& settings, bool infiniband);

/// Its colour on a terminal.
Tint tintOf(Outcome outcome);

/// Its spelling in JSON: `not_observable`.
std::string wordOf(Outcome outcome);

/// The finding to show first: the first failure, otherwise the first unobservable check; null if
/// there is neither.
const Finding* firstBroken(const VerifyReport& report);

/// The lines below a step: its reason, and whether it disrupts others.
void writeStepReason(std::ostream& out, const std::string& indent, const Step& step,
                     const Style& style, const std::string& because = "because ");

/// With this number of decimals.
std::string rounded(double value, int decimals);

/// As a YAML string in quotes, whatever it contains.
std::string yamlString(const std::string& text);

/// The kind of memory, and the GPU that has it.
std::string memoryOf(const Figure& figure);

/// The lines of a unified diff.
void writeDiffLines(std::ostream& out, const std::string& diff, const Style& style);

/// Whether the byte continues a character of UTF-8.
bool isContinuation(char byte);

}  // namespace vfpass::report
