#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_facts.hpp"
#include "vfpass/error.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/seal_key.hpp"

namespace vfpass::domain {

/// The content of one domain XML. The leases come from our metadata element, which anybody who can
/// edit the domain can write: isSealed() tells whether this host did.
struct ParsedDomain {
  Uuid uuid;
  std::string name;
  bool managed = false;  ///< has our metadata element
  /// The metadata was written for another UUID (an XML copied by hand or by virt-clone): its leases
  /// keep that UUID in `Lease::domain` and are not this domain's.
  bool foreignMetadata = false;
  /// Why our metadata element cannot be read, in which case there are no leases. Empty if it is
  /// readable or missing.
  std::string metadataProblem;
  std::string seal;        ///< attribute of the metadata element; may be empty
  std::string sealedText;  ///< what a valid seal covers
  std::vector<Lease> leases;
  std::vector<Claim> claims;
  /// Why `claims` is not complete; empty if it is.
  std::string claimProblem;
  std::vector<MacAddress> macAddresses;  ///< of interfaces, without duplicates
  std::vector<DomainInterface> interfaces;
  bool pciExpress = false;  ///< has a pcie-root controller (q35)
};

/// Quick check without parsing: false means certainly not managed. The hook must return within a
/// millisecond for domains that vfpass does not manage.
bool mayBeManaged(std::string_view xml);

/// True if a device has one of our aliases, with or without our metadata.
bool hasOurDevices(const ParsedDomain& parsed);

/// Reads a domain XML of at most 16 MiB, which is more than libvirt sends (4 MiB,
/// REMOTE_STRING_MAX). Throws Error (ExitCode::badInput) if the text is not a domain. An incomplete
/// metadata element or one of an unknown version becomes a `metadataProblem`, so that the domain's
/// claims still count.
ParsedDomain parseDomain(std::string_view xml);

/// Throws Error (ExitCode::badInput) for a `claimProblem`.
void requireKnownClaims(const ParsedDomain& parsed);

/// The UUID of the domain, from as much of its XML as libvirt writes before anything that a user
/// can add: name and UUID come first (virDomainDefFormatInternalSetRootName). Does not read
/// further, so it does not depend on the rest. nullopt if there is none.
std::optional<Uuid> leadingUuid(std::string_view xml);

/// XML skeletons for the elements that vfpass adds; built in from templates/.
struct Templates {
  std::string hostdev;
  std::string interface;   ///< for leases with `interfaceForm`
  std::string rootPort;    ///< of a flat tree
  std::string controller;  ///< of a mirrored tree
};

const Templates& builtInTemplates();

/// Chooses guest addresses for `count` new devices. On q35, each gets its own root port on bus 0
/// (in a slot of its own while there are enough free slots, otherwise eight functions to a slot)
/// and sits at slot 0, function 0 behind it: NCCL_IB_MERGE_VFS attributes other positions to the
/// host bridge. On i440fx, each gets a free slot of bus 0. Throws if the guest has no room.
std::vector<GuestPlacement> placeDevices(std::string_view xml, std::size_t count);

/// All places for a new device in a running domain, best first: behind an existing empty root port
/// (a running machine cannot gain ports), or on i440fx a free slot of bus 0. With a persistent XML,
/// only places that are free there too, so that the guest address is the same in both; for a port
/// that only the running domain has, the placement includes that port as ours.
std::vector<GuestPlacement> placeInRunning(std::string_view liveXml,
                                           std::string_view persistentXml);

/// True if a device can be plugged into the running domain at this place: the port exists and is
/// free.
bool fitsRunning(std::string_view liveXml, const GuestPlacement& placement);

/// Names of the leases that have a device in the XML, found by alias, regardless of the metadata.
std::set<std::string> devicesOfOurs(std::string_view xml);

/// The device element of a lease, for plugging it into a running domain.
std::string deviceXml(const Lease& lease, const Templates& templates);

/// Our metadata element without its namespace, as virDomainSetMetadata() expects it, sealed with
/// `key`. Empty without leases.
std::string metadataXml(const std::vector<Lease>& leases, const SealKey& key);

/// Returns the domain XML with exactly these leases: removes all our elements, then adds one root
/// port, one hostdev and one metadata entry per lease and seals the metadata with `key`. All other
/// bytes stay. Without leases, the result is the XML from before vfpass changed it.
std::string withLeases(std::string_view xml, const std::vector<Lease>& leases,
                       const Templates& templates, const SealKey& key);

/// The XML of an arriving guest with these leases in place of those that it has for the same
/// entries, whose places in the guest they have: changes host address, `managed` and VLAN inside
/// the elements, and replaces the metadata. All else stays as it is, because libvirt compares the
/// devices of an arriving guest by their order, with `<boot>` and `<acpi>`
/// (virDomainDefCheckABIStabilityFlags). Domain settings stay, too, except those that bind the
/// guest to its host (isHostSide()): it runs with what the XML has, also if its leases record
/// settings for the next start.
std::string withReplacedLeases(std::string_view xml, const std::vector<Lease>& leases,
                               const SealKey& key);

/// The XML of a saved image with the reason why the domain must not be restored from it, in an
/// element of `<metadata>`, for the start that follows. All other bytes stay. Throws like
/// parseDomain().
std::string withRefusal(std::string_view xml, const Error& error);

/// The refusal that withRefusal() has added; nullopt if there is none. Throws like parseDomain().
std::optional<Error> refusalIn(std::string_view xml);

/// True if the XML already has the metadata, seal and devices that withLeases() would write, in
/// whatever way libvirt has formatted them: then there is nothing to define.
bool carriesLeases(std::string_view xml, const std::vector<Lease>& leases, const SealKey& key);

/// Differences between our elements in the XML and those that attach writes for these leases, one
/// line each: devices with everything that libvirt applies, controllers, further elements with our
/// aliases, and a leased function that the XML claims twice. Every comparison of a domain's
/// elements with leases uses it.
std::vector<std::string> elementDifferences(std::string_view xml, const std::vector<Lease>& leases);

/// The same for the devices of a running domain. Their places in the guest cannot change while it
/// runs; those that an attach records meanwhile, and their controllers, are for the next start.
std::vector<std::string> runningDifferences(std::string_view liveXml,
                                            const std::vector<Lease>& leases);

/// Unified diff of two XML texts, for `plan`; secrets (passwd attributes) are shown as `***`.
std::string xmlDiff(std::string_view before, std::string_view after);

/// Why the domain may use other host devices than parseDomain() reads from its
/// `<qemu:commandline>`; empty if it does not. Throws like parseDomain().
std::string doubtAboutArguments(std::string_view xml);

/// The seal of a metadata element with these leases, all of one domain: HMAC-SHA256 over the host
/// id and the content of the element, independent of formatting and of the order of leases; 64
/// hexadecimal digits. Empty without a secret.
std::string sealOf(const std::vector<Lease>& leases, const SealKey& key);

/// True if this host wrote the metadata for this domain and nobody has changed it since. Act only
/// on such metadata.
bool isSealed(const ParsedDomain& parsed, const SealKey& key);

/// Why the metadata must not be acted on: unreadable, written for another domain, unsealed, or
/// sealed by another host or for other leases. Empty if the seal is valid or the domain has no
/// metadata.
std::string sealFault(const ParsedDomain& parsed, const SealKey& key);

/// The seal of the record of a hand-over, which no seal of metadata equals. Empty without a secret.
std::string sealOfRecord(std::string_view record, const SealKey& key);

/// True if this host has sealed exactly this record.
bool isSealedRecord(std::string_view record, const std::string& seal, const SealKey& key);

/// The devices that a libvirt network assigns to domains: the functions listed by `<forward
/// mode='hostdev'>` and, in any mode, the PFs named by `<pf dev=>`. (An active network lists the
/// VFs that its PF had when it was started; an inactive one names only the PF.) Empty for any other
/// network. Throws Error (ExitCode::badInput) if the text is not a network.
NetworkPool readNetworkPool(std::string_view networkXml);

/// The elements for host PCI functions that vfpass did not create, in document order: what
/// `adopt: true` can take over. Throws Error (ExitCode::badInput) if the text is not a domain.
std::vector<HostElement> hostElements(std::string_view xml);

/// The same of a running domain, and those with an alias of vfpass that none of the domain's
/// `leases` explains: `detach --keep` renames them in the persistent configuration only, because
/// libvirt cannot rename devices of a running domain.
std::vector<HostElement> runningHostElements(std::string_view liveXml,
                                             const std::vector<Lease>& leases);

/// The entries of devicesOfOurs(), and of `leases` the adopted ones whose device the XML has.
std::set<std::string> entriesWithDevice(std::string_view xml, const std::vector<Lease>& leases);

/// The alias of the lease's device in the XML, for libvirt; empty if it has none.
std::string aliasOfDevice(std::string_view xml, const Lease& lease);

/// The domain XML with the devices of these leases as elements of the domain's own: our aliases
/// become `ua-kept-...`, libvirt binds what vfpass has bound (`managed='yes'`), and our metadata is
/// removed. All other bytes stay, with controllers and domain settings.
std::string withDevicesKept(std::string_view xml, const std::vector<Lease>& leases);

}  // namespace vfpass::domain
