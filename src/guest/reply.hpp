#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace vfpass::guest {

/// Parses what an agent answered, under limits: 4 MiB, 32 levels, because printing a deep tree
/// overflows the stack, and no member twice. Throws Error that says what is wrong with it, never
/// the text itself.
nlohmann::json parseReply(std::string_view text);

/// Decodes base64 as the agent writes it; throws Error for anything else.
std::string decodeBase64(std::string_view text);

std::string encodeBase64(std::string_view bytes);

/// Members of a hostile object: the value, or what stands in for a missing one or another type.
std::string textMember(const nlohmann::json& object, const char* name);
bool flagMember(const nlohmann::json& object, const char* name);
const nlohmann::json& listMember(const nlohmann::json& object, const char* name);

}  // namespace vfpass::guest
