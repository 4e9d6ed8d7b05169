#pragma once

#include <optional>
#include <string>

namespace vfpass::config {

/// What is wrong with `ADDRESS/PREFIX` as an address of one guest interface (IPv4 or IPv6);
/// nullopt when nothing is.
std::optional<std::string> guestAddressFault(const std::string& text);

}  // namespace vfpass::config
