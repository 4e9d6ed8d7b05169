#include "vfpass/plan/judge_confidential_guest.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

using Verdict = ConfidentialVerdict;

constexpr Version qemuWithSharedAssignment{10, 1};
constexpr const char* withoutSecurity = "remove the launchSecurity element from the domain";

ConfidentialUse judgeGuestMemfdStart(const std::optional<Version>& qemu) {
  const std::string installed = "QEMU " + versionText(qemu);
  if (qemu && !isOlder(qemu, qemuWithSharedAssignment)) {
    return {"start", Verdict::possible,
            installed + " gives devices the memory that a guest shares"};
  }
  return {"start", Verdict::unknown,
          "QEMU refuses devices beside guest_memfd before 10.1 (\"discard currently blocked\") "
          "unless the distribution has backported their support; this host has " +
              installed,
          "install QEMU 10.1 or newer"};
}

ConfidentialUse judgeStart(const ConfidentialTerms& terms) {
  if (hasGuestMemfd(terms.type)) {
    return judgeGuestMemfdStart(terms.qemu);
  }
  if (terms.type == "sev") {
    return {"start", Verdict::possible, "QEMU assigns devices to SEV guests"};
  }
  if (terms.type == "s390-pv") {
    return {"start", Verdict::impossible,
            "QEMU supports no VFIO devices with protected virtualization",
            std::string(withoutSecurity) + ", or the devices from the mapping"};
  }
  return {"start", Verdict::unknown, "vfpass does not know this type", withoutSecurity};
}

// Without a limit there is nothing to say.
void judgeMappings(const ConfidentialTerms& terms, std::vector<ConfidentialUse>& uses) {
  if (!hasGuestMemfd(terms.type) || terms.backend == VfioBackend::iommufd) {
    return;
  }
  uses.push_back({"DMA mappings", Verdict::limited,
                  "QEMU maps the memory that the guest shares in pieces of 4 KiB, and a VFIO "
                  "container takes dma_entry_limit of them (65535): \"VFIO_MAP_DMA failed: No "
                  "space left on device\"",
                  "set `iommu-backend: iommufd` in the mapping (libvirt 12.2 or newer), or raise "
                  "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit"});
}

void judgeDma(const ConfidentialTerms& terms, std::vector<ConfidentialUse>& uses) {
  if (terms.nics) {
    uses.push_back(
        {"RDMA", Verdict::limited,
         "the guest's DMA bounces through shared buffers (swiotlb), which RDMA bypasses: "
         "Linux refuses to register an application's own memory, and older kernels "
         "accept it and transfer wrong data; buffers of the DMA heap system_cc_shared "
         "can be registered as DMA-BUF",
         "use an application that allocates from system_cc_shared if rdma-core reports "
         "IBV_DEVICE_CC_DMA_BOUNCE; or " +
             std::string(withoutSecurity)});
  }
  if (terms.nics && terms.gpus) {
    uses.push_back(
        {"GPUDirect RDMA", Verdict::impossible,
         "Linux maps no BAR of another device for a device whose DMA bounces; that takes "
         "GPU and NIC with TDISP",
         withoutSecurity});
  }
}

std::string_view toString(Verdict verdict) {
  constexpr std::array texts{"possible", "limited", "impossible", "uncertain"};
  return texts.at(static_cast<std::size_t>(verdict));
}

bool mapsA(FunctionRole role, const AttachInput& input) {
  return std::ranges::any_of(input.mapping.functions, [&](const MappedFunction& entry) {
    const Device* function = findFunction(input.topology, entry.pci);
    return function != nullptr && function->role == role;
  });
}

}  // namespace

ConfidentialGuest judgeConfidentialGuest(const ConfidentialTerms& terms) {
  ConfidentialGuest guest{terms.type, {judgeStart(terms)}};
  if (bouncesDma(terms.type)) {
    judgeMappings(terms, guest.uses);
    judgeDma(terms, guest.uses);
  }
  return guest;
}

std::optional<ConfidentialGuest> judgeConfidentialGuest(const AttachInput& input) {
  const auto& [vfs, functions] = std::tie(input.mapping.vfs, input.mapping.functions);
  if (input.launchSecurity.empty() || (vfs.empty() && functions.empty())) {
    return std::nullopt;
  }
  ConfidentialTerms terms;
  terms.type = input.launchSecurity;
  terms.nics = !vfs.empty() || mapsA(FunctionRole::nic, input);
  terms.gpus = mapsA(FunctionRole::gpu, input);
  terms.backend = input.backend;
  terms.qemu = input.versions.qemu;
  return judgeConfidentialGuest(terms);
}

std::vector<std::string> describe(const ConfidentialGuest& guest) {
  std::vector<std::string> lines;
  for (const ConfidentialUse& use : guest.uses) {
    if (use.verdict != Verdict::possible) {
      lines.push_back("confidential guest (" + printable(guest.type) + "): " + use.use + " is " +
                      std::string(toString(use.verdict)) + ": " + use.reason + "; " + use.remedy);
    }
  }
  return lines;
}

void objectToStart(const ConfidentialGuest& guest, std::vector<Objection>& objections) {
  const ConfidentialUse& start = guest.uses.front();
  if (start.verdict == Verdict::impossible) {
    objections.push_back({"<launchSecurity type='" + printable(guest.type) +
                              "'>: the domain cannot start with devices: " + start.reason,
                          start.remedy});
  }
}

}  // namespace vfpass::plan
