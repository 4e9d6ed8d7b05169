#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/domain_edit.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {

/// What the choice of the VFIO backend depends on.
struct BackendTerms {
  std::optional<IommuBackend> requested;  ///< by the mapping
  std::optional<bool> domains;            ///< the administrator's `<iommufd enabled=>`
  bool domainsDevice = false;             ///< a device of the administrator uses iommufd by itself
  bool containers = true;                 ///< the kernel has VFIO containers
  bool peers = false;                     ///< the mapping has a GPU and another device
  HypervisorVersions versions;
  std::optional<Version> kernel;
};

struct BackendChoice {
  VfioBackend backend = VfioBackend::container;
  std::optional<DomainSetting> setting = {};  ///< the element to write
  std::string note = {};                      ///< the reason; empty: nothing to tell
  std::vector<Objection> objections = {};
};

/// Chooses between containers and iommufd, and judges peer-to-peer traffic between the guest's
/// devices with it (judgePeerMapping()). Proposes `<iommufd enabled='yes'/>` only for a libvirt
/// that knows it: 12.2 (NEWS.rst; before, in 12.1, only single devices could use iommufd).
/// Containers are libvirt's default and need no element.
BackendChoice chooseBackend(const BackendTerms& terms);

}  // namespace vfpass::plan
