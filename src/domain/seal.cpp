#include "vfpass/domain/domain_xml.hpp"

#include <nettle/hmac.h>
#include <nettle/memops.h>

#include <array>

#include "metadata.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::domain {
namespace {

void update(hmac_sha256_ctx& context, std::string_view text) {
  hmac_sha256_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
}

// Length-prefixed, so that a host id and a text never produce the same bytes as others.
std::string sealOf(const std::string& text, const SealKey& key) {
  if (key.secret.empty()) {
    return {};
  }
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, key.secret.size(), key.secret.data());
  update(context, "22:vfpass domain metadata");
  update(context, std::to_string(key.hostId.size()) + ":" + key.hostId);
  update(context, text);
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  hmac_sha256_digest(&context, digest.size(), digest.data());
  return hexBytes(digest, "");
}

}  // namespace

std::string sealOf(const std::vector<Lease>& leases, const SealKey& key) {
  return leases.empty() ? "" : sealOf(sealedText(leases.front().domain, leases), key);
}

std::string sealFault(const ParsedDomain& parsed, const SealKey& key) {
  if (!parsed.managed) {
    return {};
  }
  if (!parsed.metadataProblem.empty()) {
    return "its vfpass metadata cannot be read: " + parsed.metadataProblem;
  }
  if (parsed.foreignMetadata) {
    return "its vfpass metadata was written for another domain: the XML was copied";
  }
  if (parsed.seal.empty()) {
    return "its vfpass metadata has no seal";
  }
  if (key.secret.empty()) {
    return "this host has no key to check the seal of its vfpass metadata";
  }
  const std::string expected = sealOf(parsed.sealedText, key);
  const bool valid = expected.size() == parsed.seal.size() &&
                     memeql_sec(expected.data(), parsed.seal.data(), expected.size()) == 1;
  return valid ? "" : "its vfpass metadata was changed, or comes from another host: wrong seal";
}

bool isSealed(const ParsedDomain& parsed, const SealKey& key) {
  return parsed.managed && sealFault(parsed, key).empty();
}

}  // namespace vfpass::domain
