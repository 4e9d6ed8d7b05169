#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/claim.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/seal_key.hpp"

namespace vfpass::domain {

/// What one domain XML says. Leases come from our metadata element, which anybody may have written
/// who can edit the domain: isSealed() (seal.hpp) tells whether this host did.
struct ParsedDomain {
  Uuid uuid;
  std::string name;
  bool managed = false;  ///< has our metadata element
  /// The metadata was written for another UUID (an XML copied by hand or by virt-clone): its leases
  /// keep that UUID in `Lease::domain` and are not this domain's.
  bool foreignMetadata = false;
  /// Why our metadata element cannot be read; its leases are none then. Empty: it can, or there is
  /// none.
  std::string metadataProblem;
  std::string seal;  ///< as the metadata element has it; empty: none
  std::vector<Lease> leases;
  std::vector<Claim> claims;
  std::set<std::string> managedAliases;  ///< aliases of claims with managed='yes'
  std::vector<MacAddress> macAddresses;  ///< of interfaces, each once
  bool pciExpress = false;               ///< has a pcie-root controller (q35)
};

/// Quick look without parsing: false means certainly not managed. For the hook, which has to be out
/// in a millisecond for everybody else's domains.
bool mayBeManaged(std::string_view xml);

/// True when it has a device with an alias of ours, whether or not it has our metadata.
bool hasOurDevices(const ParsedDomain& parsed);

/// Reads a domain XML of at most 16 MiB. Throws Error (ExitCode::badInput) for what is not one. A
/// metadata element of ours that is incomplete or of an unknown version is a `metadataProblem`, so
/// that the domain's claims still count.
ParsedDomain parseDomain(std::string_view xml);

/// XML skeletons for the elements that vfpass adds; built in from templates/, replaceable by files.
struct Templates {
  std::string hostdev;
  std::string interface;   ///< for leases with `interfaceForm`
  std::string rootPort;    ///< of a flat tree
  std::string controller;  ///< of a mirrored tree
};

const Templates& builtInTemplates();

/// Chooses guest addresses for `count` new devices: on q35 a root port of our own on bus 0 for each
/// (a free slot of its own while there are enough, otherwise eight functions to a slot) and the
/// device alone at slot 0, function 0 behind it (NCCL_IB_MERGE_VFS folds other places onto the host
/// bridge); on i440fx a free slot of bus 0. Throws when the guest has no room.
std::vector<GuestPlacement> placeDevices(std::string_view xml, std::size_t count);

/// All places for a new device in a running domain, best first: behind a root port that it has and
/// that nothing sits on (a machine grows no ports while it runs), or on i440fx a free slot of bus
/// 0. With a persistent XML only places that are free there, too, so that the guest address is the
/// same in both; a port that only the running domain has comes with the placement as ours.
std::vector<GuestPlacement> placeInRunning(std::string_view liveXml,
                                           std::string_view persistentXml);

/// True when a device can be plugged into the running domain at this place: the port is there and
/// free.
bool fitsRunning(std::string_view liveXml, const GuestPlacement& placement);

/// Names of the leases whose device the XML has, by alias; whatever the metadata says.
std::set<std::string> devicesOfOurs(std::string_view xml);

/// The device element of a lease, for plugging it into a running domain.
std::string deviceXml(const Lease& lease, const Templates& templates);

/// Our metadata element without a namespace, as virDomainSetMetadata() wants it; no leases: empty.
/// Sealed with `key`.
std::string metadataXml(const std::vector<Lease>& leases, const SealKey& key);

/// The same domain with exactly these leases: everything of ours is taken out, then one root port,
/// one hostdev and one metadata entry per lease is put in; the metadata are sealed with `key`.
/// Every other byte stays. With no leases the result is the XML as it was before vfpass touched it.
std::string withLeases(std::string_view xml, const std::vector<Lease>& leases,
                       const Templates& templates, const SealKey& key);

/// True when metadata, their seal and devices of the XML are already what withLeases() would make
/// of it, in libvirt's own formatting: then nothing need be defined.
bool carriesLeases(std::string_view xml, const std::vector<Lease>& leases, const SealKey& key);

/// For each lease the ways in which the XML's device differs from it (missing device, other host
/// address, other guest address, managed differs), one line each; empty: claims match.
std::vector<std::string> claimDifferences(const ParsedDomain& parsed,
                                          const std::vector<Lease>& leases);

/// Unified diff of two XML texts with the lines' context, for `plan`; secrets (passwd attributes)
/// are shown as `***`.
std::string xmlDiff(std::string_view before, std::string_view after);

}  // namespace vfpass::domain
