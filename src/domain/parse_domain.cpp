#include <algorithm>

#include "bad_xml.hpp"
#include "metadata_codec.hpp"
#include "our_elements.hpp"
#include "pci_attributes.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

std::string readName(const Document& document) {
  std::string name = document.domain().child_value("name");
  if (name.empty()) {
    throw badXml("no <name>");
  }
  return name;
}

// An unreadable claim must not count as no claim: another domain would get the device.
Claim readClaim(pugi::xml_node device, pugi::xml_node hostAddress) {
  const auto host = readPciAddress(hostAddress);
  if (!host) {
    throw badXml(std::string("<") + device.name() + "> without a valid host PCI address");
  }
  const auto guest = guestAddressOf(device);
  return {*host, std::string(aliasOf(device)), guest.value_or(PciAddress{}), guest.has_value()};
}

void addMac(ParsedDomain& parsed, const std::optional<MacAddress>& mac) {
  auto& known = parsed.macAddresses;
  if (mac && std::find(known.begin(), known.end(), *mac) == known.end()) {
    known.push_back(*mac);
  }
}

void readDevice(pugi::xml_node device, ParsedDomain& parsed) {
  if (const auto hostAddress = hostAddressElement(device)) {
    parsed.claims.push_back(readClaim(device, *hostAddress));
    if (attributeText(device, "managed") == "yes") {
      parsed.managedAliases.insert(parsed.claims.back().alias);
    }
  }
  if (std::string_view(device.name()) == "interface") {
    const auto mac = parseMacAddress(attributeText(device.child("mac"), "address"));
    addMac(parsed, mac);
    parsed.interfaces.push_back({std::string(aliasOf(device)), mac,
                                 std::string(attributeText(device.child("model"), "type")),
                                 std::string(attributeText(device.child("teaming"), "type"))});
  }
  parsed.pciExpress |= isPciController(device) && attributeText(device, "model") == "pcie-root";
}

// Unreadable metadata must not make the whole domain unreadable: its claims still count, and other
// domains must not suffer.
void readOurMetadata(const Document& document, ParsedDomain& parsed) {
  const auto found = ourMetadata(document);
  if (found.empty()) {
    return;
  }
  parsed.managed = true;
  if (found.size() > 1) {
    parsed.metadataProblem = "more than one vfpass element";
    return;
  }
  try {
    parsed.leases = readMetadata(found.front(), parsed.name);
    parsed.foreignMetadata = readMetadataOwner(found.front()) != parsed.uuid;
    parsed.seal = attributeText(found.front(), sealAttribute);
  } catch (const Error& error) {
    parsed.leases.clear();
    parsed.metadataProblem = error.what();
  }
}

bool mayHaveMetadata(std::string_view xml) {
  return xml.find(metadataNamespace) != std::string_view::npos;
}

}  // namespace

bool mayBeManaged(std::string_view xml) {
  return mayHaveMetadata(xml) || xml.find(aliasPrefix) != std::string_view::npos;
}

bool hasOurDevices(const ParsedDomain& parsed) {
  return std::any_of(parsed.claims.begin(), parsed.claims.end(),
                     [](const Claim& claim) { return isOurAlias(claim.alias); });
}

ParsedDomain parseDomain(std::string_view xml) {
  const Document document(xml);
  ParsedDomain parsed;
  parsed.uuid = domainUuid(document);
  parsed.name = readName(document);
  for (const auto device : document.devices()) {
    readDevice(device, parsed);
  }
  // libvirt prints a namespace literally; text with character references does not come from
  // libvirt.
  if (mayHaveMetadata(xml)) {
    readOurMetadata(document, parsed);
  }
  return parsed;
}

}  // namespace vfpass::domain
