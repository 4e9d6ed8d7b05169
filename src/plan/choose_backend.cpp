#include "vfpass/plan/choose_backend.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "vfpass/base/text.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {
namespace {

constexpr Version libvirtWithIommufd{12, 2};
constexpr Version qemuWithIommufd{9, 0};  // IOMMUFDProperties in qapi/qom.json
constexpr const char* element = "<iommufd enabled='yes'/>";
constexpr const char* newerVersions =
    "install Linux 6.19 and QEMU 11.0 or newer, or boot a kernel with VFIO containers";
constexpr const char* bootIommufd = "boot a kernel that has iommufd";

bool knowsElement(const std::optional<Version>& libvirt) {
  return libvirt && !isOlder(libvirt, libvirtWithIommufd);
}

// Whether containers are no alternative.
bool needsIommufd(const BackendTerms& terms) { return !terms.containers || terms.fastSmmus; }

VfioBackend wantedBackend(const BackendTerms& terms) {
  switch (terms.requested.value_or(IommuBackend::automatic)) {
    case IommuBackend::container:
      return VfioBackend::container;
    case IommuBackend::iommufd:
      return VfioBackend::iommufd;
    case IommuBackend::automatic:
      break;
  }
  const bool iommufd = terms.domains.value_or(needsIommufd(terms));
  return iommufd ? VfioBackend::iommufd : VfioBackend::container;
}

// The backend of the domain as a whole: if one device uses iommufd, containers do not map its BARs
// for it.
PeerMapping peersWith(const BackendTerms& terms, VfioBackend backend) {
  PeerMapping peers;
  peers.backend = !terms.domainsDevices.empty() ? VfioBackend::iommufd : backend;
  if (terms.confidential) {
    peers.possible = false;
    peers.reason =
        "a confidential guest maps no BARs of other devices with either backend (doctor's check "
        "confidential-guest)";
    return peers;
  }
  judgePeerMapping(peers, terms.containers, terms.kernel, terms.versions.qemu);
  if (!peers.remedy.empty() && needsIommufd(terms)) {
    peers.remedy = newerVersions;
  }
  return peers;
}

std::string requestOf(const BackendTerms& terms) {
  return "iommu-backend: " +
         std::string(toString(terms.requested.value_or(IommuBackend::automatic)));
}

// The administrator's element against the mapping's request.
std::optional<Objection> conflict(const BackendTerms& terms, VfioBackend wanted) {
  if (!terms.domains || *terms.domains == (wanted == VfioBackend::iommufd)) {
    return std::nullopt;
  }
  return Objection{
      "the mapping has " + requestOf(terms) + ", but the domain has <iommufd enabled='" +
          (*terms.domains ? "yes" : "no") + "'/>",
      "remove that element from the domain, or set `iommu-backend: auto`", ExitCode::badInput};
}

std::string reasonFor(const BackendTerms& terms, VfioBackend backend) {
  if (terms.requested && terms.requested != IommuBackend::automatic) {
    return "the mapping requests it";
  }
  if (terms.domains) {
    return "the domain's <iommufd> says so";
  }
  if (backend == VfioBackend::container) {
    return "libvirt's default";
  }
  return terms.containers ? "the domain has an <iommu> with accel='on'"
                          : "the kernel has no VFIO containers";
}

std::optional<Objection> missingOnHost(const BackendTerms& terms, VfioBackend wanted) {
  if (wanted == VfioBackend::container && !terms.containers) {
    return Objection{requestOf(terms) + ": the kernel has no VFIO containers (vfio_iommu_type1)",
                     "set `iommu-backend: iommufd`"};
  }
  if (wanted == VfioBackend::iommufd && !terms.domains && !knowsElement(terms.versions.libvirt)) {
    return Objection{requestOf(terms) +
                         (terms.requested == IommuBackend::iommufd
                              ? ""
                              : ": " + reasonFor(terms, wanted) + ", and iommufd") +
                         " needs libvirt 12.2 or newer, which has " + element +
                         "; this host has libvirt " + versionText(terms.versions.libvirt),
                     needsIommufd(terms)
                         ? "install libvirt 12.2 or newer"
                         : "install libvirt 12.2 or newer, or set `iommu-backend: auto`"};
  }
  return std::nullopt;
}

// `missing` is what the domain would start with, `remedy` how to get it.
std::vector<Objection> refuseUses(const BackendTerms& terms, const std::string& missing,
                                  const std::string& remedy) {
  std::vector<Objection> objections;
  for (const IommufdUse& use : iommufdUses(terms, remedy)) {
    objections.push_back({use.what + ": " + missing, use.remedy});
  }
  return objections;
}

std::vector<Objection> missingIommufd(const BackendTerms& terms) {
  std::vector<Objection> objections;
  if (!terms.iommufd) {
    objections = refuseUses(
        terms,
        std::string("the kernel has no ") + (terms.containers ? "" : "VFIO containers and no ") +
            "iommufd for VFIO devices (CONFIG_IOMMUFD, CONFIG_VFIO_DEVICE_CDEV)",
        bootIommufd);
  }
  if (isOlder(terms.versions.qemu, qemuWithIommufd)) {
    append(refuseUses(terms,
                      "iommufd needs QEMU 9.0 or newer, which has the object iommufd; this host "
                      "has QEMU " +
                          versionText(terms.versions.qemu),
                      "install QEMU 9.0 or newer"),
           objections);
  }
  return objections;
}

std::string noteOf(const BackendTerms& terms, VfioBackend backend, const PeerMapping& peers) {
  const bool usual = backend == VfioBackend::container && terms.domainsDevices.empty();
  const bool matters = terms.peers && !terms.confidential;
  if (!terms.requested && usual && !matters) {
    return {};
  }
  std::string note = requestOf(terms) + ": " +
                     (backend == VfioBackend::container ? "containers" : "iommufd") + " (" +
                     reasonFor(terms, backend) + "); ";
  if (!terms.domainsDevices.empty() && backend == VfioBackend::container) {
    note += "a device of the domain uses iommufd; ";
  }
  note += peers.reason;
  if (!peers.possible.value_or(false) && matters) {
    note += peers.possible ? "; the devices cannot reach each other, so that GPUDirect RDMA fails"
                           : "; whether the devices can reach each other is unknown";
    note += "; " + peers.remedy;
  }
  return note;
}

constexpr Version kernelWithDmaBuf{6, 19};
constexpr Version qemuWithDmaBuf{11, 0};
constexpr const char* useContainers =
    "remove `iommu-backend: iommufd` from the mapping and attach it, remove iommufd='yes' from the "
    "<driver> of each <hostdev> and <iommufd enabled='yes'/> from the domain, then restart it: "
    "type "
    "1 containers map BARs";

}  // namespace

bool hasPeers(const Mapping& mapping, const std::vector<PciAddress>& own, const Topology& host) {
  std::set<PciAddress> functions(own.begin(), own.end());  // an adopted one is in both
  for (const MappedFunction& entry : mapping.functions) {
    functions.insert(entry.pci);
  }
  return mapping.vfs.size() + functions.size() > 1 &&
         std::ranges::any_of(functions, [&](const PciAddress& address) {
           const Device* function = findFunction(host, address);
           return function != nullptr && function->role == FunctionRole::gpu;
         });
}

BackendChoice chooseBackend(const BackendTerms& terms) {
  BackendChoice choice;
  choice.backend = wantedBackend(terms);
  for (const auto& objection :
       {conflict(terms, choice.backend), missingOnHost(terms, choice.backend)}) {
    if (objection) {
      choice.objections.push_back(*objection);
    }
  }
  append(missingIommufd(terms), choice.objections);
  choice.peers = peersWith(terms, choice.backend);
  const PeerMapping& peers = choice.peers;
  choice.note = noteOf(terms, choice.backend, peers);
  if (choice.backend == VfioBackend::iommufd && !terms.domains && choice.objections.empty()) {
    choice.setting = DomainSetting{
        "iommu-backend", element, reasonFor(terms, choice.backend) + "; " + peers.reason,
        SettingStanding::proposed, DomainEdit{"iommu-backend", EditPlace::domain, {element}}};
  }
  return choice;
}

namespace {

IommufdUse useOfMapping(const BackendTerms& terms) {
  if (terms.requested != IommuBackend::iommufd && terms.fastSmmus) {
    return {"", "the domain has an <iommu> with accel='on', which works only with iommufd",
            "remove accel='on' from the <driver> of each <iommu>"};
  }
  return {"", requestOf(terms), "set `iommu-backend: auto` in the mapping and attach it"};
}

}  // namespace

std::vector<IommufdUse> iommufdUses(const BackendTerms& terms) {
  return iommufdUses(terms, bootIommufd);
}

std::vector<IommufdUse> iommufdUses(const BackendTerms& terms, const std::string& remedy) {
  std::vector<IommufdUse> uses;
  const bool domains = terms.domains.value_or(false);
  if (wantedBackend(terms) == VfioBackend::iommufd && domains) {
    uses.push_back({"", "the domain has " + std::string(element), "remove that element from it"});
  }
  if (wantedBackend(terms) == VfioBackend::iommufd &&
      (!domains || terms.requested == IommuBackend::iommufd)) {
    uses.push_back(useOfMapping(terms));
  }
  if (!terms.domainsDevices.empty()) {
    uses.push_back({"", "the domain requests iommufd for " + joinFirst(terms.domainsDevices),
                    "remove iommufd='yes' from the <driver>, or iommufd= from the "
                    "<qemu:commandline>, of these devices"});
  }
  if (uses.empty() && terms.configured == VfioBackend::iommufd) {
    uses.push_back({"", "attach has written " + std::string(element) + " for an earlier mapping",
                    "attach the present mapping, which removes it"});
  }
  for (IommufdUse& use : uses) {
    use.remedy = terms.containers ? use.remedy + ", or " + remedy : remedy;
  }
  return uses;
}

void judgePeerMapping(PeerMapping& mapping, bool containers, const std::optional<Version>& kernel,
                      const std::optional<Version>& qemu) {
  if (mapping.backend == VfioBackend::container && !containers) {
    mapping.possible = false;
    mapping.reason =
        "the kernel has no VFIO containers (type 1): its /dev/vfio/vfio is iommufd's, which maps "
        "no BARs";
    mapping.remedy =
        std::string("set `iommu-backend: iommufd` in the mapping and attach it; ") + newerVersions;
    return;
  }
  if (mapping.backend == VfioBackend::container) {
    mapping.possible = true;
    mapping.reason = "VFIO containers (type 1) map each device's BARs for the other devices";
    return;
  }
  const bool tooOld = isOlder(kernel, kernelWithDmaBuf) || isOlder(qemu, qemuWithDmaBuf);
  const std::string installed = "Linux " + versionText(kernel) + " and QEMU " + versionText(qemu);
  if (tooOld) {
    mapping.possible = false;
    mapping.reason = "iommufd maps BARs since Linux 6.19 and QEMU 11.0; this host has " + installed;
  } else if (kernel && qemu) {
    mapping.possible = true;
    mapping.reason =
        "iommufd maps each device's BARs for the other devices as DMA-BUFs with " + installed;
  } else {
    mapping.reason = "iommufd maps BARs since Linux 6.19 and QEMU 11.0; this host has " + installed;
  }
  mapping.remedy = mapping.possible.value_or(false) ? "" : useContainers;
}

}  // namespace vfpass::plan
