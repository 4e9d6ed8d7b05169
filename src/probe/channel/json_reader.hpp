#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vfpass::probe {

/// Parses a message from another process: at most `largestMessage` bytes, 8 levels deep. Throws
/// Error.
nlohmann::json parseMessage(std::string_view text);

/// The longest message that two probes send each other, in bytes.
constexpr std::size_t largestMessage = std::size_t{64} << 10U;

/// Required members of a message. Each throws Error if the member is missing, or has another type
/// or is too large.
std::uint64_t numberMember(const nlohmann::json& object, const char* name,
                           std::uint64_t largest = UINT64_MAX);
/// The same in a smaller type, by default up to its largest number.
template <typename Number>
Number numberMemberAs(const nlohmann::json& object, const char* name,
                      Number largest = std::numeric_limits<Number>::max()) {
  return static_cast<Number>(numberMember(object, name, static_cast<std::uint64_t>(largest)));
}
bool flagMember(const nlohmann::json& object, const char* name);
std::string textMember(const nlohmann::json& object, const char* name);
const nlohmann::json& objectMember(const nlohmann::json& object, const char* name);
/// A list of at most `most` values of any type.
const nlohmann::json& listMember(const nlohmann::json& object, const char* name, std::size_t most);
/// A value of the list with this name. Throws Error unless it is a number up to `largest`.
std::uint64_t numberIn(const nlohmann::json& value, const char* list, std::uint64_t largest);

}  // namespace vfpass::probe
