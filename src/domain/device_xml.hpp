#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"
#include "metadata.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

/// The `<hostdev>` or `<interface>` of a lease, in libvirt's formatting; `indentation` is put
/// before every line but the first. Of an adopted device the recorded element. Throws Error
/// (ExitCode::badInput) for an invalid template.
std::string deviceFragment(const Lease& lease, const Templates& templates,
                           std::string_view indentation);

/// The `<controller>` of a lease that has a root port.
std::string portFragment(const Lease& lease, const Templates& templates,
                         std::string_view indentation);

/// The `<controller>` of a mirrored tree.
std::string controllerFragment(const GuestController& controller, const Templates& templates,
                               std::string_view indentation);

/// The `<vfpass:domain>` element, sealed with `key`. `leases` is not empty and all leases belong to
/// one domain. `containers` is not sealed: it only determines how our elements are removed from
/// that domain's XML.
std::string metadataFragment(const std::vector<Lease>& leases, const SealKey& key,
                             const Containers& containers, std::string_view indentation);

/// The domain XML without our metadata, devices and controllers. A port with another device behind
/// it stays; if none of the `wanted` leases has it, it loses our alias.
std::string removeElements(std::string_view xml, const std::vector<Lease>& wanted);

}  // namespace vfpass::domain
