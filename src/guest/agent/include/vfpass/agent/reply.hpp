#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vfpass::agent {

/// Parses an agent's reply of at most 4 MiB and 32 levels, without duplicate members. The Error it
/// throws names the problem and never quotes the reply.
nlohmann::json parseReply(std::string_view text);

/// Decodes base64 as the agent writes it; throws Error for anything else.
std::string decodeBase64(std::string_view text);

std::string encodeBase64(std::string_view bytes);

}  // namespace vfpass::agent
