#include "judge_gpu_place.hpp"

namespace vfpass::verify {
namespace {

std::string describe(std::optional<bool> present, const char* whenPresent) {
  return !present ? "not readable" : *present ? whenPresent : "none";
}

Finding services(const std::string& subject, const GuestPciServices& seen) {
  return {"pcie-services",
          subject,
          Outcome::waived,
          "",
          "for information, the guest's view of its NIC: ATS " +
              describe(seen.ats, seen.atsEnabled ? "on" : "off") + ", ACS " +
              describe(seen.acs, "present") +
              "; only the host's settings take effect (vfpass doctor)",
          ""};
}

bool isNear(const std::string& distance) { return distance == "PIX" || distance == "PXB"; }

// The probe uses NCCL's terms, which have no NODE.
std::string inNcclTerms(const std::string& distance) {
  return distance == "NODE" ? "PHB" : distance;
}

std::string placeRemedy(const TestedGpu& gpu) {
  const auto& path = gpu.path;
  const std::string level = std::string("or set NCCL_NET_GDR_LEVEL=") +
                            (gpu.distance == "PHB" ? "PHB" : "SYS") + " in the guest";
  if (path && !path->inXml.empty() && inNcclTerms(path->inXml) != gpu.distance) {
    return "compare with `vfpass topo --vm`: the tree in the guest differs from the one in its XML";
  }
  if (path && !isNear(path->distance)) {
    return "they are " + path->distance + " apart on the host: give the VM a VF of a PF that is " +
           "nearer to the GPU (`pf: {near: ...}`); " + level;
  }
  return "set topology: mirror in the mapping, shut the VM off, run vfpass attach and start it; " +
         level;
}

Finding distanceFinding(const std::string& subject, const TestedGpu& gpu) {
  const auto& path = gpu.path;
  std::string expected = "NIC and GPU below one switch in the guest: PIX or PXB";
  if (path && !path->inXml.empty()) {
    expected += " (domain XML: " + path->inXml + ", host: " + path->distance + ")";
  }
  const std::string seen = gpu.distance + " to GPU " + nameOf(gpu);
  if (gpu.distance.empty()) {
    return {
        "gpu-distance", subject, Outcome::waived, expected, "the guest reports no distance", ""};
  }
  if (isNear(gpu.distance)) {
    return {"gpu-distance", subject, Outcome::passed, expected, seen, ""};
  }
  return {"gpu-distance",
          subject,
          Outcome::warning,
          expected,
          seen + ": NCCL does not use GPUDirect over this distance",
          placeRemedy(gpu)};
}

}  // namespace

std::vector<Finding> judgeGpuPlace(const std::string& subject, const GuestView& view,
                                   const std::string& nic, const TestedGpu& gpu) {
  std::vector<Finding> findings{distanceFinding(subject, gpu)};
  const auto own = view.services.find(nic);
  if (own != view.services.end()) {
    findings.push_back(services(subject, own->second));
  }
  return findings;
}

}  // namespace vfpass::verify
