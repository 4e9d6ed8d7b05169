#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {

/// The `<hostdev>` or `<interface>` of a lease, in libvirt's formatting; `indentation` stands
/// before every line but the first. Throws Error (ExitCode::badInput) for a template that cannot be
/// filled.
std::string deviceFragment(const Lease& lease, const Templates& templates,
                           std::string_view indentation);

/// The `<controller>` of a lease that has a root port.
std::string portFragment(const Lease& lease, const Templates& templates,
                         std::string_view indentation);

/// The `<controller>` of a mirrored tree.
std::string controllerFragment(const GuestController& controller, const Templates& templates,
                               std::string_view indentation);

/// What `<metadata>` was before our element came; remembered in our element, because afterwards
/// nobody can see it.
enum class MetadataContainer { absent, selfClosing, present };

/// The `<vfpass:domain>` element, sealed with `key`; `leases` all belong to one domain and are not
/// empty. `container` is not sealed: it only says how our element leaves its own domain's XML.
std::string metadataFragment(const std::vector<Lease>& leases, const SealKey& key,
                             MetadataContainer container, std::string_view indentation);

/// The inverse: what metadataFragment() was told.
MetadataContainer containerOf(std::string_view containerAttribute);

inline constexpr const char* containerAttribute = "container";

}  // namespace vfpass::domain
