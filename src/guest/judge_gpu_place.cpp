#include "judge_gpu_place.hpp"

#include <algorithm>
#include <array>

#include "vfpass/pci_address.hpp"

namespace vfpass::guest {
namespace {

// CUDA writes eight digits of the domain, sysfs four.
bool sameFunction(const std::string& one, const std::string& other) {
  const auto address = parsePciAddress(one);
  return address && address == parsePciAddress(other);
}

constexpr std::array<std::string_view, 4> nearestFirst{"PIX", "PXB", "PHB", "SYS"};

// An unknown word is farther than any.
std::size_t rank(const std::string& distance) {
  return static_cast<std::size_t>(std::ranges::find(nearestFirst, distance) - nearestFirst.begin());
}

std::string distanceOf(const GuestView& view, const std::string& nic, const std::string& gpu) {
  const auto found = std::ranges::find_if(view.distances, [&](const GuestDistance& each) {
    return sameFunction(each.nic, nic) && sameFunction(each.gpu, gpu);
  });
  return found == view.distances.end() ? "" : found->distance;
}

std::string tell(std::optional<bool> present, const char* absent, const char* there) {
  return !present ? "cannot be read" : *present ? there : absent;
}

Finding services(const std::string& subject, const GuestPciServices& seen) {
  return {"pcie-services",
          subject,
          Outcome::waived,
          "",
          "for information, the guest's view of its NIC: ATS " +
              tell(seen.ats, "none", seen.atsEnabled ? "on" : "off") + ", ACS " +
              tell(seen.acs, "none", "there") + "; what counts is the host's: vfpass doctor",
          ""};
}

bool isNear(const std::string& distance) { return distance == "PIX" || distance == "PXB"; }

// The probe has NCCL's words, which know no NODE.
std::string inNcclWords(const std::string& distance) {
  return distance == "NODE" ? "PHB" : distance;
}

// Why they are no nearer, and what changes that.
std::string placeRemedy(const NearestGpu& gpu, const std::optional<GpuWay>& way) {
  const std::string level = std::string("NCCL_NET_GDR_LEVEL=") +
                            (gpu.distance == "PHB" ? "PHB" : "SYS") + " in the guest overrules it";
  if (way && !way->inXml.empty() && inNcclWords(way->inXml) != gpu.distance) {
    return "compare with `vfpass topo --vm`: the guest shows another tree than its XML";
  }
  if (way && !isNear(way->distance)) {
    return "they are " + way->distance + " apart on the host: give the VM a VF of a PF that is " +
           "nearer to the GPU (`pf: {near: ...}`); " + level;
  }
  return "topology: mirror in the mapping, vfpass attach while the VM is shut off, and a start; " +
         level;
}

Finding distanceFinding(const std::string& subject, const NearestGpu& gpu,
                        const std::optional<GpuWay>& way) {
  std::string expected = "NIC and GPU below one switch of the guest: PIX or PXB";
  if (way && !way->inXml.empty()) {
    expected += " (its XML: " + way->inXml + ", the host: " + way->distance + ")";
  }
  const std::string seen = gpu.distance + " to GPU " + std::to_string(gpu.index);
  if (gpu.distance.empty()) {
    return {"gpu-distance",
            subject,
            Outcome::waived,
            expected,
            "the guest does not say how they are placed",
            ""};
  }
  if (isNear(gpu.distance)) {
    return {"gpu-distance", subject, Outcome::passed, expected, seen, ""};
  }
  return {"gpu-distance",
          subject,
          Outcome::warning,
          expected,
          seen + ": NCCL does not use GPUDirect over this distance",
          placeRemedy(gpu, way)};
}

}  // namespace

std::optional<NearestGpu> nearestGpu(const GuestView& view, const std::string& nic) {
  std::optional<NearestGpu> best;
  for (const auto& gpu : view.gpus) {
    if (!gpu.index) {
      continue;
    }
    const NearestGpu found{*gpu.index, gpu.name, distanceOf(view, nic, gpu.pci), gpu.dmaBuf};
    if (!best || rank(found.distance) < rank(best->distance)) {
      best = found;
    }
  }
  return best;
}

Finding noGpuForCuda(const std::string& subject) {
  return {"gpu-driver",    subject,
          Outcome::failed, "a GPU that CUDA can use",
          "none",          "in the guest: nvidia-smi"};
}

std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const NearestGpu& gpu,
                                   const std::optional<GpuWay>& way) {
  std::vector<Finding> findings{distanceFinding(subject, gpu, way)};
  const auto own = view.services.find(nic);
  if (own != view.services.end()) {
    findings.push_back(services(subject, own->second));
  }
  return findings;
}

}  // namespace vfpass::guest
