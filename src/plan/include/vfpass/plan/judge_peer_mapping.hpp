#pragma once

#include <optional>

#include "vfpass/peer_mapping.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {

/// Sets `possible`, `reason` and `remedy` for the backend. nullopt: the version is unknown.
///
/// A container of type 1 maps the pages behind another device's BAR like memory (follow_pfnmap in
/// drivers/vfio/vfio_iommu_type1.c). iommufd pins pages, which BARs do not have; it takes BARs
/// as DMA-BUFs that vfio-pci exports (VFIO_DEVICE_FEATURE_DMA_BUF, iopt_pages of a DMA-BUF: Linux
/// 6.19), and QEMU asks for them since 11.0 (vfio_region_create_dma_buf in hw/vfio/region.c).
/// Older ones leave the BAR out with a warning: `IOMMU_IOAS_MAP failed: Bad address, PCI BAR?`.
void judgePeerMapping(PeerMapping& mapping, const std::optional<Version>& kernel,
                      const std::optional<Version>& qemu);

}  // namespace vfpass::plan
