#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

// What planAttach() decides for the entries of a mapping, part by part.

// guest_places.cpp

/// Assigns a guest address to each lease of one mapping.
class Places {
 public:
  /// `input` must outlive it.
  explicit Places(const AttachInput& input) : input_(input) {}

  /// Keeps the address of the earlier lease, unless it is not available in the running domain;
  /// otherwise takes the next free one. Adds a problem when a running domain has no free port.
  void assign(const Lease* earlier, Lease& lease, std::vector<Objection>& objections);

 private:
  [[nodiscard]] std::string portRemedy() const;
  void plug(Lease& lease, std::vector<Objection>& objections);
  [[nodiscard]] bool isTaken(const Lease& lease, const PciAddress& place) const;

  const AttachInput& input_;
  std::size_t used_ = 0;
  std::set<PciAddress> assigned_;
  std::vector<Lease> placed_;
};

/// The host's function that is below the same bridges as the lease's device: that device, or the PF
/// of a VF, which may not exist yet. nullptr if the host has none.
const Device* hostFunction(const AttachInput& input, const Lease& lease);

/// Places the leases in a tree that mirrors the host's, where the mapping requests it and the
/// persistent configuration changes. A device that is plugged into a running guest has its place
/// already, because the running tree cannot grow.
void mirrorPlaces(const AttachInput& input, AttachDecision& decision);

/// How many of `placed` would have the same distance to `candidate` in the guest as on the host. 0
/// if the trees are not known.
std::size_t matchingDistances(const AttachInput& input, const std::vector<Lease>& placed,
                              const Lease& candidate);

// decide_lease.cpp

/// The earlier lease of this entry; nullptr if there is none.
const Lease* earlierLease(const AttachInput& input, const std::string& entry);

/// Whether an attach of this entry has left the VF as it is, and its record was lost with the
/// database: it has the MAC that vfpass derives for the entry, and the driver for guests. What the
/// VF had before is not known any more.
bool isLeftover(const VirtualFunction& vf, const Lease& lease);

/// A lease for this entry without its device. `kept`: its earlier lease if that is for the same
/// device.
Lease newLease(const AttachInput& input, const std::string& entry, const Lease* kept);

/// The leases for the entries of `vfs:`, in their order. An entry keeps VF, address, originals and
/// automatic values of its earlier lease where the mapping still allows them.
std::vector<Lease> decideLeases(const AttachInput& input, Places& places,
                                std::vector<Objection>& objections);

/// True when the leases differ at most in domain name, generation, originals, state, boot ID and VF
/// count.
bool sameTerms(const Lease& earlier, const Lease& wanted);

// check_device.cpp

/// What `migration: vfio` needs of the host: the driver and the versions. Unknown ones are not
/// refused.
void checkMigrationHost(const AttachInput& input, std::vector<Objection>& objections);

/// What it needs of the PF: mlx5_core, Ethernet and switchdev mode.
void checkMigration(const MappedVf& entry, const PhysicalFunction& pf,
                    std::vector<Objection>& objections);

// adopt_element.cpp

/// Whether this attach takes over the domain's own element for the entry: `adopt` is the mapping's
/// word, and the entry has no lease of this device yet.
bool adopts(const AttachInput& input, bool adopt, const std::string& entry,
            const PciAddress& device);

/// Whether the mapping has the word for this entry: what then prevents it is objected to there.
bool asksToAdopt(const AttachInput& input, const std::string& entry);

/// Completes the lease of a VF whose element is the domain's own: guest address, form and `managed`
/// are the element's, and what the mapping leaves out is what the VF has now.
void adoptVf(const AttachInput& input, const MappedVf& entry, const PhysicalFunction& pf,
             Lease& lease, std::vector<Objection>& objections);

/// The same for an entry whose earlier lease has adopted the device.
void keepAdopted(const AttachInput& input, const MappedVf& entry, const Lease& earlier,
                 Lease& lease, std::vector<Objection>& objections);

/// As adoptVf() for a PCI function.
void adoptFunction(const AttachInput& input, const MappedFunction& entry, Lease& lease,
                   std::vector<Objection>& objections);

/// The holders of devices, without this domain's own guest where it has the device by an element
/// that vfpass did not create.
std::vector<Holder> holdersExceptOwnGuest(const AttachInput& input);

/// The input with the entries to adopt that the running guest has as plugged; nullopt if there are
/// none.
std::optional<AttachInput> withAdoptions(const AttachInput& input);

// decide_function.cpp

/// The leases for the entries of `functions:`, in their order; adds a problem for each function
/// that is not available. An entry keeps guest address and originals of its earlier lease. `vfs`:
/// the leases of the mapping's VFs.
std::vector<Lease> decideFunctions(const AttachInput& input, const std::vector<Lease>& vfs,
                                   Places& places, std::vector<Objection>& objections);

// choose_partition.cpp

/// Adds a problem for GPUs that no partition of the fabric manager holds exactly.
void checkPartition(const AttachInput& input, std::vector<Objection>& objections);

/// Records the module IDs of the GPUs of a partition, by which each start finds and activates it;
/// none if they are not known, and then nothing is activated.
void recordModules(const AttachInput& input, std::vector<Lease>& leases);

// choose_vf.cpp

/// Chooses the VF for one entry of the mapping: the one it names, or the first that is free.
/// `taken`: indexes on this PF that other entries of the mapping use. Adds a problem and returns
/// nullopt when there is none.
std::optional<unsigned> chooseVf(const AttachInput& input, const MappedVf& entry,
                                 const PhysicalFunction& pf, const std::set<unsigned>& taken,
                                 std::vector<Objection>& objections);

/// The number of VFs that the PF has, or gets from this attach: what host.yaml requests, otherwise
/// what the mappings and leases of this host need of it. Not the card's maximum: each VF takes time
/// to create, pages of the card's memory in the host, and interrupt vectors from the other VFs.
unsigned vfCountFor(const AttachInput& input, const PhysicalFunction& pf);

// choose_addresses.cpp

/// A locally administered unicast MAC derived only from the domain and the VF's name, so that it is
/// the same on every host and after any loss of state. If `taken` returns true for an address, the
/// next one of the same sequence is tried.
MacAddress derivedMac(const Uuid& domain, const std::string& entry,
                      const std::function<bool(const MacAddress&)>& taken);

enum class GuidRole { node, port };

/// The same for a GUID; the local bit of the EUI-64 is set.
Guid derivedGuid(const Uuid& domain, const std::string& entry, GuidRole role,
                 const std::function<bool(const Guid&)>& taken);

/// Chooses the MAC and GUIDs that the mapping leaves to vfpass, and adds a problem for each address
/// that is already used elsewhere. `decided`: leases already decided for the same mapping.
void chooseAddresses(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
                     const std::vector<Lease>& decided, Lease& lease,
                     std::vector<Objection>& objections);

// choose_vectors.cpp

/// The interrupt vectors of the leases whose entry sets `msix-vectors`. `auto` is one per vCPU and
/// one for events, as the guest's mlx5_core asks for; entries that would get more than their PF has
/// left share what is left evenly, and `notes` says so. A running guest keeps what it has. Objects
/// to a number that the PF cannot give; an attribute that is not required is recorded as refused.
void chooseVectors(const AttachInput& input, std::vector<Lease>& leases,
                   std::vector<std::string>& notes, std::vector<Objection>& objections);

// link_speeds.cpp

inline constexpr std::string_view linkSpeedsSetting = "link-speeds";

/// With `link-speeds: host`, the setting that gives each root port of vfpass with a device directly
/// behind it the speed and width of the host's link (docs/decisions/link-speeds.md). Ports with an
/// override of the domain's own get none. Adds notes about the devices whose link the guest cannot
/// see: QEMU's switch ports have no such properties. Objects to a libvirt or QEMU without them.
std::vector<DomainSetting> linkSpeedSettings(const AttachInput& input, AttachDecision& decision);

// lease_changes.cpp

/// When attach changes the persistent configuration, assigns the edits of the settings that it
/// applies to the domain's leases. Lists the settings that the domain still lacks.
void assignSettings(const AttachInput& input, AttachDecision& decision);

/// Names of the settings whose elements `wanted` adds, changes or removes.
std::vector<std::string> changedSettings(const AttachInput& input,
                                         const std::vector<Lease>& wanted);

/// Changes that attach makes to the domain's leases.
struct LeaseChanges {
  std::vector<Lease> put;      ///< new, with changed terms, or about to run
  std::vector<Lease> plugged;  ///< of these, the ones to plug into the running domain
  std::vector<Lease> dropped;  ///< no longer in the mapping, or moved to another VF
  std::vector<Lease> drifted;  ///< of the running guest, with settings that others changed
  std::vector<Lease> renamed;  ///< the same device with the same terms, under the entry's new name
  bool terms = false;          ///< more than the state of a lease changes
};

/// The changes from the domain's leases to the `wanted` ones; those without a change become equal
/// to the earlier ones, and those to plug in get the state running.
LeaseChanges compareLeases(const AttachInput& input, std::vector<Lease>& wanted);

/// Adds problems for changes that are not possible while the guest is running: another device or
/// address for one that the guest has. Settings of the PF's switch (VLAN, rate, trust, ...) can
/// change. `companions`: the devices that the guest gets.
void checkRunning(const AttachInput& input, const LeaseChanges& changes,
                  const std::set<PciAddress>& companions, std::vector<Objection>& objections);

/// Entries of the mapping whose device the domain has leased under another name, with that name:
/// those that name the VF or the function itself, and those with `index: auto` on the PF of a lease
/// that no entry has any more, which has the same settings if there is such a one.
std::map<std::string, std::string> findRenames(const AttachInput& input);

/// The same for these leases. `onPf` tells whether the entry can have the PF of the lease.
std::map<std::string, std::string> findRenames(
    const Mapping& mapping, const std::vector<Lease>& leases, const Uuid& domain,
    const std::function<bool(const MappedVf& entry, const Lease& lease)>& onPf);

/// The input with these leases under their new names; nullopt without any.
std::optional<AttachInput> withRenames(const AttachInput& input);

/// The lease under the name that it is recorded with.
Lease asRecorded(const AttachInput& input, Lease lease);

/// The leases of all domains under the names that they are recorded with.
std::vector<Lease> asRecorded(const AttachInput& input);

/// Adds problems for renames that are not possible: the running guest has a device by its alias,
/// and a name that another lease still has cannot be recorded twice.
void checkRenames(const AttachInput& input, std::vector<Objection>& objections);

/// Adds the steps that end the records under the old names. The devices are not touched.
void dropRenamed(const AttachInput& input, std::vector<Step>& steps);

}  // namespace vfpass::plan
