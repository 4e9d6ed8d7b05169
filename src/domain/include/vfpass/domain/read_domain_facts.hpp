#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/imported_mapping.hpp"
#include "vfpass/peer_mapping.hpp"

namespace vfpass::domain {

/// The parts of a domain XML that passed-through devices depend on, without the elements that
/// vfpass added. Invalid amounts and node sets are left out. Throws Error (ExitCode::badInput) if
/// the text is not a domain.
DomainFacts readDomainFacts(std::string_view xml);

/// The cells, vCPUs and memory placement of a domain XML, also those that vfpass added: how a
/// running domain is placed. The other members keep their defaults. Throws Error
/// (ExitCode::badInput) if the text is not a domain.
DomainFacts readPlacement(std::string_view xml);

/// Returns the XML with these edits added, for display only: they are not recorded in the metadata,
/// so do not define it. Skips edits whose container is missing.
std::string withEdits(std::string_view xml, const std::vector<DomainEdit>& edits);

/// Memory size, limit and device count of a domain XML. An invalid size is read as 0, an invalid
/// limit as no limit. Throws Error (ExitCode::badInput) if the text is not a domain.
GuestMemory guestMemory(std::string_view xml);

/// The VFIO backend that a domain XML requests: iommufd when any PCI `<hostdev>` uses it, by
/// `<driver iommufd='yes'/>` (libvirt 12.1) or, without that attribute, by the domain's `<iommufd
/// enabled='yes'/>` (12.2), or a `vfio-pci` in `<qemu:commandline>` by `iommufd=`. libvirt defaults
/// to a container. Throws Error (ExitCode::badInput) if the text is not a domain.
VfioBackend configuredBackend(std::string_view xml);

/// PCI buses, passed-through devices and NUMA cells of a domain XML. Leaves out hostdevs with an
/// invalid host address, cells without an id and invalid node sets. Throws Error
/// (ExitCode::badInput) if the text is not a domain.
GuestMachine readGuestMachine(std::string_view xml);

/// The machine without our devices and controllers: what the guest keeps after a detach.
GuestMachine withoutOurDevices(GuestMachine machine);

/// The devices of the host in a domain XML, in document order, then those of `<qemu:commandline>`.
/// Includes those with our aliases, and `<interface type='network'>` of every network. Throws Error
/// (ExitCode::badInput) if the text is not a domain.
std::vector<HandMadeDevice> readHandMade(std::string_view xml);

/// A program that creates and changes domains by itself, and how the domain shows it.
struct ManagingTool {
  std::string name;      ///< `OpenStack`
  std::string evidence;  ///< `metadata of http://openstack.org/xmlns/libvirt/nova/1.1`
};

/// The program that manages this domain, or several in one name (`OpenStack and KubeVirt`): its
/// metadata has the program's namespace, or the SMBIOS tables name the program. Empty names if
/// there is none. Throws Error (ExitCode::badInput) if the text is not a domain.
ManagingTool managingTool(std::string_view xml);

}  // namespace vfpass::domain
