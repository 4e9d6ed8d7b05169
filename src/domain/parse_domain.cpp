#include <algorithm>
#include <pugixml.hpp>

#include "document.hpp"
#include "metadata.hpp"
#include "our_elements.hpp"
#include "qemu_arguments.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/error.hpp"
#include "xml_source.hpp"

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
void readClaim(pugi::xml_node device, pugi::xml_node hostAddress, ParsedDomain& parsed) {
  const auto host = readPciAddress(hostAddress);
  if (!host) {
    parsed.claimProblem = std::string("<") + device.name() + "> without a valid host PCI address";
    return;
  }
  parsed.claims.push_back(
      {*host, std::string(aliasOf(device)), guestAddressOf(device).value_or(PciAddress{})});
}

void readDevice(pugi::xml_node device, ParsedDomain& parsed) {
  if (const auto hostAddress = hostAddressElement(device)) {
    readClaim(device, *hostAddress, parsed);
  }
  if (std::string_view(device.name()) == "interface") {
    const auto mac = parseMacAddress(attributeText(device.child("mac"), "address"));
    if (mac) {
      parsed.macAddresses.push_back(*mac);
    }
    parsed.interfaces.push_back({std::string(aliasOf(device)), mac,
                                 std::string(attributeText(device.child("model"), "type")),
                                 std::string(attributeText(device.child("teaming"), "type"))});
  }
  parsed.pciExpress |= isPciController(device) && attributeText(device, "model") == "pcie-root";
}

void readArguments(const Document& document, ParsedDomain& parsed) {
  for (const QemuDevice& device : readQemuArguments(document).devices) {
    if (const auto host = device.hostFunction()) {
      parsed.claims.push_back({*host, std::string(argumentsAlias), PciAddress{}});
    }
  }
}

// Unreadable metadata must not make the whole domain unreadable: its claims still count, and other
// domains must not suffer.
void readOurMetadata(const Document& document, ParsedDomain& parsed) {
  const auto found = ourMetadata(document);
  if (found.empty()) {
    return;
  }
  parsed.managed = true;
  parsed.metadataProblem =
      found.size() > 1 ? "more than one vfpass element" : document.metadataFault();
  if (!parsed.metadataProblem.empty()) {
    return;
  }
  try {
    Metadata metadata = readMetadata(found.front(), parsed.name);
    parsed.leases = std::move(metadata.leases);
    parsed.sealedText = std::move(metadata.sealedText);
    parsed.foreignMetadata = metadata.owner != parsed.uuid;
    parsed.seal = attributeText(found.front(), sealAttribute);
  } catch (const Error& error) {
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
  return std::ranges::any_of(parsed.claims,
                             [](const Claim& claim) { return isOurAlias(claim.alias); });
}

void requireKnownClaims(const ParsedDomain& parsed) {
  if (!parsed.claimProblem.empty()) {
    throw badXml(parsed.claimProblem);
  }
}

std::optional<Uuid> leadingUuid(std::string_view xml) {
  TagReader reader(xml);
  for (std::size_t level = 0; const auto tag = reader.next();) {
    const auto name = reader.nameOf(*tag);
    if (tag->kind == Tag::Kind::end) {
      level -= level > 0 ? 1 : 0;
      continue;
    }
    if (level == 1 && name == "metadata") {
      return std::nullopt;
    }
    if (level == 1 && name == "uuid") {
      return parseUuid(xml.substr(tag->end, xml.find('<', tag->end) - tag->end));
    }
    level += tag->kind == Tag::Kind::start ? 1 : 0;
  }
  return std::nullopt;
}

std::string doubtAboutArguments(std::string_view xml) {
  return xml.find(argumentsElement) == std::string_view::npos
             ? std::string()
             : readQemuArguments(Document(xml)).doubt;
}

ParsedDomain parseDomain(std::string_view xml) {
  const Document document(xml);
  ParsedDomain parsed;
  parsed.uuid = domainUuid(document);
  parsed.name = readName(document);
  for (const auto device : document.devices()) {
    readDevice(device, parsed);
  }
  readArguments(document, parsed);
  auto& macs = parsed.macAddresses;
  std::ranges::sort(macs);
  macs.erase(std::unique(macs.begin(), macs.end()), macs.end());
  // libvirt prints a namespace literally; text with character references does not come from
  // libvirt.
  if (mayHaveMetadata(xml)) {
    readOurMetadata(document, parsed);
  }
  return parsed;
}

NetworkPool readNetworkPool(std::string_view networkXml) {
  pugi::xml_document document;
  const auto result = document.load_buffer(networkXml.data(), networkXml.size());
  const pugi::xml_node network = document.child("network");
  if (!result || !network) {
    throw Error("cannot parse libvirt's network XML", {}, ExitCode::badInput);
  }
  NetworkPool pool{network.child_value("name"), {}, {}};
  const pugi::xml_node forward = network.child("forward");
  for (const auto pf : forward.children("pf")) {
    pool.pfNetdevs.emplace_back(pf.attribute("dev").value());
  }
  if (std::string_view(forward.attribute("mode").value()) == "hostdev") {
    for (const auto address : forward.children("address")) {
      if (const auto device = readPciAddress(address)) {
        pool.devices.push_back(*device);
      }
    }
  }
  return pool;
}

}  // namespace vfpass::domain
