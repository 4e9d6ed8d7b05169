#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_session.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/choose_backend.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/version.hpp"

namespace vfpass::commands {

/// The domain (name or UUID). Throws badInput if libvirt has none.
DomainDescription existingDomain(Session& session, const std::string& vm);

/// The domain, which must be running for `command` (`guest-setup`, `verify`). Throws badInput if it
/// does not exist, unverified if it is not running.
DomainDescription runningGuest(Session& session, const std::string& vm, const std::string& command);

/// Leases that the running domain uses. Throws (unverified) if there are none.
std::vector<Lease> runningLeases(Session& session, const DomainDescription& domain);

/// Those of them that are VFs. Throws (unverified) if there are none.
std::vector<Lease> runningVfs(Session& session, const DomainDescription& domain);

/// The PCI tree in a domain's XML: in the live XML if the domain is running, because that is what
/// the guest sees. Leased VFs are represented by their PFs, which have the same distances. Throws
/// Error (bad input) if libvirt has no such domain.
GuestMachine guestMachineOf(Session& session, const std::string& vm,
                            const std::vector<Lease>& leases);

/// The place of a lease's device in the guest's PCI tree (topology::guestPath). Empty: the domain
/// XML does not have the device.
std::vector<PciAddress> guestPathOf(const GuestMachine& machine, const std::string& entry);

/// The address of this lease's device in the guest, with the guest's own bus numbers. nullopt if
/// the domain XML does not have the device.
std::optional<PciAddress> addressInGuest(const GuestMachine& machine, const Lease& lease);

/// A leased device and its place in the host's topology.
struct LeasedDevice {
  Lease lease;
  std::size_t function = 0;  ///< index of its function; of the PF if the VF does not exist yet
};

/// The devices leased to a VM (name or UUID). Throws Error if there are none or a PF does not
/// exist.
std::vector<LeasedDevice> guestDevicesOf(const std::string& vm,
                                         const report::TopologyReport& report);

/// The same devices with their address and NUMA node in the guest, for NCCL's file. Throws Error
/// for a device that is missing from the domain XML.
std::vector<report::GuestDevice> placedIn(const GuestMachine& machine,
                                          const std::vector<LeasedDevice>& devices,
                                          const Topology& guest);

/// The running kernel's version; nullopt: unknown.
std::optional<Version> kernelOf(const host::Root& root);

/// What plan::chooseBackend() depends on, without the versions of libvirt and QEMU, and as if the
/// kernel had iommufd.
plan::BackendTerms backendTerms(const host::Root& root, const Mapping& mapping,
                                const Topology& topology, const DomainFacts& facts);

/// What makes the domain use iommufd from its next start on. Without `persistentXml` only what the
/// mapping requests is known.
std::vector<IommufdUse> iommufdUsesOf(Session& session, const Mapping& mapping,
                                      const Topology& topology, std::string_view persistentXml);

/// The backend with which the domain starts after the mapping is attached.
VfioBackend nextBackendOf(const Session& session, const Mapping& mapping, const Topology& topology,
                          std::string_view persistentXml);

/// How the mapping and the domain's own elements take peer-to-peer traffic from its devices from
/// the next start on; nullopt if they do not, or if the domain has no GPU with another device, or
/// is a confidential guest that bounces its DMA. Without `persistentXml` the domain's own elements
/// are not known.
std::optional<PeerMapping> peersLostBy(Session& session, const Mapping& mapping,
                                       const Topology& topology, std::string_view persistentXml);

/// Whether the domain's devices can reach each other's BARs: determined from the files that the
/// running QEMU has open for the leased devices if those are readable (which needs root), otherwise
/// from the domain XML. nullopt: the domain has fewer than two of the host's devices,
/// or is a confidential guest that bounces its DMA and so maps no BARs of other devices.
std::optional<PeerMapping> peerMappingOf(Session& session, const DomainDescription& domain,
                                         const std::vector<Lease>& leases);

/// Checks through the guest agent that the running guest does not use the devices that the plan
/// unplugs. Throws (refused) if it does, and (unverified) if that cannot be determined. With
/// `force` it only prints a warning and does not contact the agent.
void requireUnused(Session& session, const Plan& plan, bool force);

}  // namespace vfpass::commands
