#pragma once

#include <optional>
#include <string>

namespace vfpass::config {

/// Why `ADDRESS/PREFIX` is not valid as the address (IPv4 or IPv6) of a guest interface; nullopt if
/// it is valid.
std::optional<std::string> guestAddressFault(const std::string& text);

}  // namespace vfpass::config
