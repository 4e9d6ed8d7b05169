#include "metadata.hpp"

#include <nettle/hmac.h>
#include <nettle/memops.h>

#include <algorithm>
#include <array>

#include "document.hpp"
#include "our_elements.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/model/lease_fields.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

using model::Json;

constexpr const char* currentVersion = "2";
constexpr const char* firstVersion = "1";

// More than a guest has room for (256 buses). Each lease is compared with all devices.
constexpr std::size_t maxLeases = 1024;
// Of one lease; the domain settings are on one lease of the domain.
constexpr std::size_t maxEdits = 64;
constexpr std::size_t maxElementSize = 1U << 20U;

constexpr const char* containerAttribute = "container";

void writeContainer(pugi::xml_node node, Container container) {
  if (container != Container::absent) {
    setAttribute(node, containerAttribute,
                 container == Container::present ? "present" : "self-closing");
  }
}

Container readContainer(pugi::xml_node node) {
  const auto text = attributeText(node, containerAttribute);
  return text == "present"        ? Container::present
         : text == "self-closing" ? Container::selfClosing
                                  : Container::absent;
}

std::string requiredAttribute(pugi::xml_node node, const char* name) {
  const auto attribute = node.attribute(name);
  if (!attribute) {
    throw badMetadata(std::string("attribute ") + name + " of <" + printable(node.name()) +
                      "> is missing");
  }
  return attribute.value();
}

bool isFirstVersion(pugi::xml_node metadata) {
  const std::string version = requiredAttribute(metadata, "version");
  if (version != firstVersion && version != currentVersion) {
    throw badMetadata("version '" + printable(version) + "' is not known");
  }
  return version == firstVersion;
}

Uuid ownerOf(pugi::xml_node metadata) {
  const std::string text = requiredAttribute(metadata, "uuid");
  const auto uuid = parseUuid(text);
  if (!uuid) {
    throw badMetadata("'" + printable(text) + "' is not a UUID");
  }
  return *uuid;
}

// Of a lease, with the errors of badMetadata().
const JsonSource leaseSource{"a lease", {}, ExitCode::badInput};

// Calls `read()`, whose input is untrusted.
template <typename Read>
auto readUntrusted(Read read) {
  try {
    return read();
  } catch (const JsonRefused& refused) {
    throw badJson(leaseSource, refused.what());
  }
}

// Exactly one element. scanElements() bounds its nesting before it reaches the parser, which is
// recursive in places.
bool isElement(const std::string& text) {
  if (text.size() > maxElementSize) {
    return false;
  }
  try {
    const auto spans = scanElements(text);
    pugi::xml_document tree;
    return spans.front().begin == 0 && spans.front().end == text.size() &&
           tree.load_buffer(text.data(), text.size());
  } catch (const Error&) {
    return false;
  }
}

void requireElements(const DomainEdit& edit) {
  if (!std::ranges::all_of(edit.elements, isElement)) {
    throw badMetadata("a domain setting has a text that is not one XML element");
  }
}

// It becomes part of the domain's XML, and is compared with elements of it.
void requireAdoptedElement(const Lease& lease) {
  if (isAdopted(lease) && !isElement(lease.adoptedElement)) {
    throw badMetadata("the element of an adopted device is not one XML element");
  }
}

Json leaseJson(pugi::xml_node lease, bool isFirst) {
  return isFirst ? leaseOfVersion1(lease) : model::parseRecord(lease.child_value());
}

Lease readLease(pugi::xml_node node, bool isFirst) {
  const Json json = readUntrusted([&] { return leaseJson(node, isFirst); });
  Lease lease = readUntrusted([&] { return model::decodeTerms(JsonReader(json, leaseSource)); });
  if (lease.edits.size() > maxEdits) {
    throw badMetadata("a lease has more than " + std::to_string(maxEdits) + " domain settings");
  }
  std::ranges::for_each(lease.edits, requireElements);
  requireAdoptedElement(lease);
  return lease;
}

std::vector<pugi::xml_node> leasesIn(pugi::xml_node metadata) {
  std::vector<pugi::xml_node> leases;
  for (const auto node : metadata) {
    if (isOurChild(node, "lease")) {
      leases.push_back(node);
    }
  }
  return leases;
}

void addEdit(std::vector<RecordedEdit>& edits, const JsonReader& json, Container container) {
  const DomainEdit edit = readUntrusted([&] { return model::decodeEdit(json); });
  requireElements(edit);
  edits.push_back({edit, container});
}

// Calls `read()`, and adds nothing if it fails.
template <typename Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error&) {
    return;
  }
}

void addEditsOfVersion1(pugi::xml_node lease, std::vector<RecordedEdit>& edits) {
  for (const auto node : lease) {
    if (isOurChild(node, "setting") && edits.size() < maxEdits) {
      attempt([&] {
        const Json edit = editOfVersion1(node);
        addEdit(edits, JsonReader(edit, leaseSource), readContainer(node));
      });
    }
  }
}

void addEdits(pugi::xml_node lease, const Containers& containers,
              std::vector<RecordedEdit>& edits) {
  const Json json = readUntrusted([&] { return model::parseRecord(lease.child_value()); });
  for (const JsonReader& member : JsonReader(json, leaseSource)["edits"].listOrEmpty()) {
    if (edits.size() < maxEdits) {
      attempt([&] {
        addEdit(edits, member, Container::absent);
        const auto found = containers.edits.find(edits.back().edit.place);
        edits.back().container =
            found == containers.edits.end() ? Container::absent : found->second;
      });
    }
  }
}

Containers readContainers(pugi::xml_node metadata) {
  Containers containers;
  for (const auto node : metadata) {
    const auto place = parseEditPlace(attributeText(node, "name"));
    if (place && isOurChild(node, "place")) {
      containers.edits[*place] = readContainer(node);
    }
  }
  return containers;
}

}  // namespace

Container metadataContainer(pugi::xml_node metadata) { return readContainer(metadata); }

pugi::xml_node writeMetadata(pugi::xml_node parent, const Uuid& domain,
                             const std::vector<Lease>& leases, const Containers& containers) {
  auto node = parent.append_child("vfpass:domain");
  setAttribute(node, "xmlns:vfpass", std::string(metadataNamespace).c_str());
  setAttribute(node, "version", currentVersion);
  setAttribute(node, "uuid", toString(domain).c_str());
  for (const Lease& lease : leases) {
    node.append_child("vfpass:lease").text().set(model::encodeTerms(lease).c_str());
  }
  writeContainer(node, containers.metadata);
  const auto edits = editsOf(leases);
  for (const auto& [place, container] : containers.edits) {
    if (container != Container::absent &&
        std::ranges::find(edits, place, &DomainEdit::place) != edits.end()) {
      auto element = node.append_child("vfpass:place");
      setAttribute(element, "name", std::string(toString(place)).c_str());
      writeContainer(element, container);
    }
  }
  return node;
}

std::string sealedText(const Uuid& domain, std::vector<Lease> leases) {
  std::ranges::sort(leases, {}, &Lease::entry);
  // Each part with its length, so that two different elements never produce the same bytes.
  const auto sized = [](const std::string& text) {
    return std::to_string(text.size()) + ":" + text;
  };
  std::string text = sized(currentVersion) + sized(toString(domain));
  for (const Lease& lease : leases) {
    text += sized(model::encodeTerms(lease));
  }
  return text;
}

Metadata readMetadata(pugi::xml_node metadata, const std::string& domainName) {
  const bool isFirst = isFirstVersion(metadata);
  Metadata read{ownerOf(metadata), {}, {}};
  std::set<std::string> names;
  for (const auto node : leasesIn(metadata)) {
    if (read.leases.size() == maxLeases) {
      throw badMetadata("more than " + std::to_string(maxLeases) + " leases");
    }
    read.leases.push_back(readLease(node, isFirst));
    read.leases.back().domain = read.owner;
    read.leases.back().domainName = domainName;
    if (!names.insert(read.leases.back().entry).second) {
      throw badMetadata("two leases are named '" + read.leases.back().entry + "'");
    }
  }
  read.sealedText = isFirst ? sealedTextOfVersion1(metadata) : sealedText(read.owner, read.leases);
  return read;
}

std::vector<RecordedEdit> recordedEdits(const std::vector<pugi::xml_node>& elements) {
  std::vector<RecordedEdit> edits;
  for (const auto metadata : elements) {
    const bool isFirst = attributeText(metadata, "version") == firstVersion;
    const Containers containers = readContainers(metadata);
    for (const auto lease : leasesIn(metadata)) {
      if (isFirst) {
        addEditsOfVersion1(lease, edits);
      } else {
        attempt([&] { addEdits(lease, containers, edits); });
      }
    }
  }
  return edits;
}

namespace {

void update(hmac_sha256_ctx& context, std::string_view text) {
  hmac_sha256_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
}

// Length-prefixed, so that a host id and a text never produce the same bytes as others, nor a text
// of one purpose the seal of another.
std::string sealFor(std::string_view purpose, std::string_view text, const SealKey& key) {
  if (key.secret.empty()) {
    return {};
  }
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, key.secret.size(), key.secret.data());
  update(context, std::to_string(purpose.size()) + ":" + std::string(purpose));
  update(context, std::to_string(key.hostId.size()) + ":" + key.hostId);
  update(context, text);
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  hmac_sha256_digest(&context, digest.size(), digest.data());
  return hexBytes(digest, "");
}

std::string sealOf(const std::string& text, const SealKey& key) {
  return sealFor("vfpass domain metadata", text, key);
}

bool isEqual(const std::string& expected, const std::string& seal) {
  return !expected.empty() && expected.size() == seal.size() &&
         memeql_sec(expected.data(), seal.data(), expected.size()) == 1;
}

}  // namespace

std::string sealOfRecord(std::string_view record, const SealKey& key) {
  return sealFor("vfpass hand-over record", record, key);
}

bool isSealedRecord(std::string_view record, const std::string& seal, const SealKey& key) {
  return isEqual(sealOfRecord(record, key), seal);
}

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
  return isEqual(sealOf(parsed.sealedText, key), parsed.seal)
             ? ""
             : "its vfpass metadata was changed, or comes from another host: wrong seal";
}

bool isSealed(const ParsedDomain& parsed, const SealKey& key) {
  return parsed.managed && sealFault(parsed, key).empty();
}

}  // namespace vfpass::domain
