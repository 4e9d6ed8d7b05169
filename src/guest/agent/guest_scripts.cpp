#include "vfpass/agent/guest_scripts.hpp"

#include <nettle/sha2.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "vfpass/base/text.hpp"

namespace vfpass::agent {

ExecResult runShell(Agent& agent, const std::string& script, std::vector<std::string> arguments,
                    std::string_view input) {
  arguments.insert(arguments.begin(), {"-c", script});
  return agent.run("/bin/sh", arguments, input);
}

std::string firstLine(const std::string& text) {
  return printable(text.substr(0, std::min(text.find('\n'), std::size_t{200})));
}

std::string sha256(std::string_view content) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, content.size(), reinterpret_cast<const std::uint8_t*>(content.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context, digest.size(), digest.data());
  std::string text;
  for (const std::uint8_t byte : digest) {
    constexpr const char* digits = "0123456789abcdef";
    text += {digits[byte >> 4U], digits[byte & 15U]};
  }
  return text;
}

}  // namespace vfpass::agent
