#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {

/// What the choice of the VFIO backend depends on.
struct BackendTerms {
  std::optional<IommuBackend> requested;  ///< by the mapping
  std::optional<bool> domains;            ///< the administrator's `<iommufd enabled=>`
  std::vector<std::string> domainsDevices =
      {};  ///< the administrator's that use iommufd themselves
  /// Of the domain's XML, with what attach has written there.
  VfioBackend configured = VfioBackend::container;
  bool containers = true;  ///< the kernel has VFIO containers of type 1
  bool iommufd = true;     ///< the kernel has iommufd for VFIO devices
  bool fastSmmus = false;  ///< the domain has an `<iommu>` with accel='on'
  bool peers = false;      ///< hasPeers()
  /// The guest bounces its DMA (bouncesDma()): it has no peer-to-peer traffic to lose.
  bool confidential = false;
  HypervisorVersions versions;
  std::optional<Version> kernel;
};

struct BackendChoice {
  VfioBackend backend = VfioBackend::container;
  std::optional<DomainSetting> setting = {};  ///< the element to write
  std::string note = {};                      ///< the reason; empty: nothing to tell
  std::vector<Objection> objections = {};
  PeerMapping peers = {};  ///< judged for the whole domain; without its name
};

/// Whether peer-to-peer traffic matters: the mapping and the domain's own elements, which share
/// the backend, have a GPU and another device.
bool hasPeers(const Mapping& mapping, const std::vector<PciAddress>& own, const Topology& host);

/// Chooses between containers and iommufd, and judges peer-to-peer traffic between the guest's
/// devices with it (judgePeerMapping()). Proposes `<iommufd enabled='yes'/>` only for a libvirt
/// that knows it: 12.2 (NEWS.rst; before, in 12.1, only single devices could use iommufd). Refuses
/// each use of iommufd with a QEMU before 9.0, which has no object iommufd (qapi/qom.json).
/// Containers are libvirt's default and need no element. An accelerated SMMUv3 works only with
/// iommufd (QEMU, hw/arm/smmuv3-accel.c).
BackendChoice chooseBackend(const BackendTerms& terms);

/// What makes the domain use iommufd from its next start on: the mapping, the administrator's
/// element and devices, or else what attach wrote for an earlier mapping. Without the domain's
/// name. Empty: containers.
std::vector<IommufdUse> iommufdUses(const BackendTerms& terms);

/// The same, with `remedy` instead of a kernel that has iommufd.
std::vector<IommufdUse> iommufdUses(const BackendTerms& terms, const std::string& remedy);

/// Sets `possible`, `reason` and `remedy` for the backend. nullopt: the version is unknown.
///
/// A container of type 1 maps the pages behind another device's BAR like memory (follow_pfnmap in
/// drivers/vfio/vfio_iommu_type1.c). iommufd pins pages, which BARs do not have; it takes BARs
/// as DMA-BUFs that vfio-pci exports (VFIO_DEVICE_FEATURE_DMA_BUF, iopt_pages of a DMA-BUF: Linux
/// 6.19), and QEMU asks for them since 11.0 (vfio_region_create_dma_buf in hw/vfio/region.c).
/// Older ones leave the BAR out with a warning: `IOMMU_IOAS_MAP failed: Bad address, PCI BAR?`.
///
/// `containers`: whether the kernel has those of type 1. A container that iommufd emulates pins
/// pages, too (iommufd_vfio_map_dma in drivers/iommu/iommufd/vfio_compat.c).
void judgePeerMapping(PeerMapping& mapping, bool containers, const std::optional<Version>& kernel,
                      const std::optional<Version>& qemu);

}  // namespace vfpass::plan
