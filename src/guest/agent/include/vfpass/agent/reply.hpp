#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace vfpass::agent {

/// Parses an agent's reply of at most 4 MiB and 32 levels, without duplicate members. The Error it
/// throws names the problem and never quotes the reply.
nlohmann::json parseReply(std::string_view text);

/// Decodes base64 as the agent writes it; throws Error for anything else.
std::string decodeBase64(std::string_view text);

std::string encodeBase64(std::string_view bytes);

/// A member of an untrusted object; null if it is missing.
const nlohmann::json& member(const nlohmann::json& object, const char* name);

/// The same for members of one type. A missing member or one of another type reads as "", 0, false
/// or an empty list.
std::string textMember(const nlohmann::json& object, const char* name);
std::uint64_t countMember(const nlohmann::json& object, const char* name);
bool flagMember(const nlohmann::json& object, const char* name);
const nlohmann::json& listMember(const nlohmann::json& object, const char* name);

}  // namespace vfpass::agent
