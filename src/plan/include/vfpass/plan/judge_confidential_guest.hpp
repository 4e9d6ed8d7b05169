#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/confidential_guest.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {

/// What a judgement of a confidential guest depends on.
struct ConfidentialTerms {
  std::string type;  ///< of `<launchSecurity>`
  bool nics = false;
  bool gpus = false;
  VfioBackend backend = VfioBackend::container;
  std::optional<Version> qemu;
};

/// What the guest can do with such devices: each use that the devices suggest.
///
/// QEMU: protected virtualization has no VFIO devices (docs/system/s390x/protvirt.rst). A
/// guest_memfd blocked VFIO from 9.1 on (852f0048f3ea, "discard currently blocked") until 10.1
/// mapped what the guest shares (2fde3fb91607), 4 KiB at a time; distributions have backported that
/// (RHEL 10.1 to 10.0), so that an older version decides nothing.
///
/// Linux in the guest: DMA goes through swiotlb. RDMA requires coherent memory
/// (DMA_ATTR_REQUIRE_COHERENT in ib_umem_get), which is refused then, and dma_direct_map_phys()
/// maps no BAR (DMA_ATTR_MMIO; earlier is_pci_p2pdma_page).
ConfidentialGuest judgeConfidentialGuest(const ConfidentialTerms& terms);

/// The same for the domain of an attach; nullopt without `<launchSecurity>` or without devices.
std::optional<ConfidentialGuest> judgeConfidentialGuest(const AttachInput& input);

/// One line for each use that is not simply possible.
std::vector<std::string> describe(const ConfidentialGuest& guest);

/// Adds a problem if QEMU does not start the guest with devices.
void objectToStart(const ConfidentialGuest& guest, std::vector<Objection>& objections);

}  // namespace vfpass::plan
