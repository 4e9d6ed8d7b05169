#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// Why `ADDRESS/PREFIX` is not valid as the address (IPv4 or IPv6) of a guest interface; nullopt if
/// it is valid.
std::optional<std::string> guestAddressFault(const std::string& text);

/// Why this name, which has the schema's form, is not possible as the fixed name of an interface in
/// the guest; nullopt if it is.
std::optional<std::string> guestNameFault(const std::string& name);

/// One problem for each VF whose interface has the name of an earlier one's. Mappings of other
/// guests may have the same names.
std::vector<Problem> repeatedGuestNames(const Mapping& mapping);

}  // namespace vfpass::config
