#pragma once

#include <optional>
#include <string>

#include "vfpass/vf_settings.hpp"

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

}  // namespace vfpass::report
