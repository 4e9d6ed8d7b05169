#pragma once

#include <map>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/model/record.hpp"

namespace vfpass::domain {

/// State of an element before vfpass added to it. Recorded in our metadata because it cannot be
/// told from the XML afterwards.
enum class Container { absent, selfClosing, present };

struct Containers {
  Container metadata = Container::absent;  ///< `<metadata>` itself
  std::map<EditPlace, Container> edits;    ///< containers of domain settings
};

/// Reads the record of `<metadata>` itself.
Container metadataContainer(pugi::xml_node metadata);

/// Appends an unsealed `<vfpass:domain>` to `parent` and returns it. It has one `<vfpass:lease>`
/// per lease, whose text is model::encodeTerms(), and one `<vfpass:place>` per place of a domain
/// setting that existed before. The containers are not sealed: they only determine how our elements
/// are removed from that domain's XML.
pugi::xml_node writeMetadata(pugi::xml_node parent, const Uuid& domain,
                             const std::vector<Lease>& leases, const Containers& containers);

/// The attribute that holds the seal.
inline constexpr const char* sealAttribute = "seal";

/// What the seal of an element that writeMetadata() wrote covers: everything in it but the state of
/// other elements, independent of formatting and of the order of leases.
std::string sealedText(const Uuid& domain, std::vector<Lease> leases);

/// Our metadata element.
struct Metadata {
  /// UUID of the domain that it was written for; in a copied XML it differs from the domain's own.
  Uuid owner;
  std::vector<Lease> leases;  ///< state and bootId have their defaults
  std::string sealedText;     ///< what its seal covers
};

/// Reads an element of version 2, which writeMetadata() writes, or of version 1. Throws Error
/// (ExitCode::badInput) for another version and for missing or invalid content: a lease must not be
/// partly understood.
Metadata readMetadata(pugi::xml_node metadata, const std::string& domainName);

/// A domain setting that the element records, and the state of the element at its place before.
struct RecordedEdit {
  DomainEdit edit;
  Container container = Container::absent;
};

/// The domain settings of our elements, also if the rest of them is damaged: detach has to find
/// what vfpass added. Leaves out what cannot be read, and what exceeds the limit of one readable
/// lease.
std::vector<RecordedEdit> recordedEdits(const std::vector<pugi::xml_node>& elements);

/// Our metadata element as vfpass 0.1 wrote it before version 2: a lease in attributes of
/// `<vfpass:lease>` and of its children. Only read; the next change of the domain writes version 2.

/// The lease as model::decodeTerms() reads it. Throws Error (ExitCode::badInput) for attributes
/// that cannot be converted; those that are missing are missing in the result.
model::Json leaseOfVersion1(pugi::xml_node lease);

/// A `<vfpass:setting>` of a lease, as model::decodeEdit() reads it. Throws as above.
model::Json editOfVersion1(pugi::xml_node setting);

/// What the seal of the element covers, independent of formatting and of the order of leases.
std::string sealedTextOfVersion1(pugi::xml_node metadata);

}  // namespace vfpass::domain
