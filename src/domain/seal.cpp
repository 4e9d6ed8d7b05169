#include "vfpass/domain/seal.hpp"

#include <nettle/hmac.h>
#include <nettle/memops.h>

#include <algorithm>
#include <array>

#include "metadata_codec.hpp"
#include "our_elements.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::domain {
namespace {

// Length-prefixed, so that two different elements never produce the same bytes.
void addText(hmac_sha256_ctx& context, std::string_view text) {
  const std::string length = std::to_string(text.size()) + ":";
  for (const std::string_view part : {std::string_view(length), text}) {
    hmac_sha256_update(&context, part.size(), reinterpret_cast<const std::uint8_t*>(part.data()));
  }
}

// Covers the tree that writeMetadata() builds, so everything that is written is sealed.
void addElement(hmac_sha256_ctx& context, pugi::xml_node node) {
  addText(context, node.name());
  for (const auto attribute : node.attributes()) {
    addText(context, attribute.name());
    addText(context, attribute.value());
  }
  for (const auto child : node) {
    addElement(context, child);
  }
  addText(context, "");  // the element's end
}

std::vector<Lease> inOrder(std::vector<Lease> leases) {
  std::ranges::sort(leases,
                    [](const Lease& one, const Lease& other) { return one.entry < other.entry; });
  return leases;
}

}  // namespace

std::string sealOf(const std::vector<Lease>& leases, const SealKey& key) {
  if (key.secret.empty() || leases.empty()) {
    return {};
  }
  pugi::xml_document tree;
  const auto element = writeMetadata(tree, leases.front().domain, inOrder(leases));
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, key.secret.size(), key.secret.data());
  addText(context, "vfpass domain metadata");
  addText(context, key.hostId);
  addElement(context, element);
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  hmac_sha256_digest(&context, digest.size(), digest.data());
  return hexBytes(digest, "");
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
  const std::string expected = sealOf(parsed.leases, key);
  const bool valid = expected.size() == parsed.seal.size() &&
                     memeql_sec(expected.data(), parsed.seal.data(), expected.size()) == 1;
  return valid ? "" : "its vfpass metadata was changed, or comes from another host: wrong seal";
}

bool isSealed(const ParsedDomain& parsed, const SealKey& key) {
  return parsed.managed && sealFault(parsed, key).empty();
}

}  // namespace vfpass::domain
