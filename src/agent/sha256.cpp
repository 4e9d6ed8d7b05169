#include "vfpass/agent/sha256.hpp"

#include <nettle/sha2.h>

#include <array>
#include <cstdint>

namespace vfpass::agent {

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
