// A domain XML as libvirt passes it to the hook: anybody who can edit the domain can write most of
// it.
// covers: src/domain/parse_domain.cpp src/domain/document.cpp src/domain/xml_source.cpp
// src/domain/our_elements.cpp src/domain/metadata.cpp src/domain/metadata_version_1.cpp
// src/domain/element_differences.cpp src/domain/add_remove_elements.cpp
// src/domain/domain_edits.cpp src/domain/adopted_elements.cpp -hasOurDevices -requireKnownClaims
// -readNetworkPool
#include "vfpass/domain/domain_xml.hpp"
#include "fake/seal_key.hpp"
#include "fuzz/target.hpp"
#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::fuzz {
namespace {

std::string withoutLeases(const std::string& xml) {
  return domain::withLeases(xml, {}, domain::builtInTemplates(), fake::sealKey());
}

void checkRemoval(const std::string& xml) {
  const auto bare = accepted([&] { return withoutLeases(xml); });
  if (!bare) {
    return;
  }
  require(withoutLeases(*bare) == *bare, "removing our elements twice is removing them once");
  require(!domain::parseDomain(*bare).managed, "no metadata of ours is left");
  require(domain::devicesOfOurs(*bare).empty(), "no device of ours is left");
  static_cast<void>(domain::xmlDiff(xml, *bare));
}

void checkRewriting(const std::string& xml, const std::vector<Lease>& leases) {
  const auto written = accepted(
      [&] { return domain::withLeases(xml, leases, domain::builtInTemplates(), fake::sealKey()); });
  if (!written) {
    return;
  }
  const auto again = domain::parseDomain(*written);
  require(again.leases == leases, "leases that are written read the same");
  require(domain::isSealed(again, fake::sealKey()), "leases that are written are sealed");
  accepted([&] { return domain::carriesLeases(*written, leases, fake::sealKey()); });
}

// What attach takes over and `detach --keep` leaves.
void checkHostElements(const std::string& xml, const std::vector<Lease>& leases) {
  const auto elements = accepted([&] { return domain::hostElements(xml); });
  require(elements.has_value(), "each domain can be searched for devices");
  for (const auto& element : *elements) {
    require(xml.find(element.text) != std::string::npos, "an element is a part of the XML");
    require(element.vlan.value_or(0) <= 4094, "a VLAN is one");
  }
  const auto running = accepted([&] { return domain::runningHostElements(xml, leases); });
  require(running && running->size() >= elements->size(),
          "a device without an alias of ours is left out of neither");
  for (const Lease& lease : leases) {
    accepted([&] { return domain::aliasOfDevice(xml, lease); });
  }
  accepted([&] { return domain::managingTool(xml); });
  accepted([&] { return domain::readGuestMachine(xml); });
  accepted([&] { return domain::entriesWithDevice(xml, leases); });
  if (const auto kept = accepted([&] { return domain::withDevicesKept(xml, leases); })) {
    require(accepted([&] { return domain::parseDomain(*kept); }).has_value(),
            "a domain with kept devices is a domain");
    if (!leases.empty()) {
      checkRewriting(*kept, leases);  // takes them back
    }
  }
}

}  // namespace

void runTarget(std::string_view input) {
  const std::string xml(input);
  const auto leading = accepted([&] { return domain::leadingUuid(xml); });
  const auto parsed = accepted([&] { return domain::parseDomain(xml); });
  if (!parsed) {
    return;
  }
  require(!parsed->managed || domain::mayBeManaged(xml), "the quick check finds our metadata");
  require(!leading || !*leading || **leading == parsed->uuid, "both readers find the same UUID");
  require(parsed->leases.empty() || parsed->metadataProblem.empty(),
          "unreadable metadata has no leases");
  require(!parsed->managed || !domain::isSealed(*parsed, {}), "no seal is valid without a secret");
  accepted([&] { return domain::doubtAboutArguments(xml); });
  accepted([&] { return domain::elementDifferences(xml, parsed->leases); });
  accepted([&] { return domain::runningDifferences(xml, parsed->leases); });
  checkHostElements(xml, parsed->leases);
  checkRemoval(xml);
  if (!parsed->leases.empty()) {
    checkRewriting(xml, parsed->leases);
  }
}

}  // namespace vfpass::fuzz
