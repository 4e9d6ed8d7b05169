#pragma once

#include <map>
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

/// What an element was before elements of ours came into it; remembered in our metadata, because
/// afterwards nobody can see it.
enum class Container { absent, selfClosing, present };

struct Containers {
  Container metadata = Container::absent;  ///< `<metadata>` itself
  std::map<EditPlace, Container> edits;    ///< those of domain settings
};

/// The `<vfpass:domain>` element, sealed with `key`; `leases` all belong to one domain and are not
/// empty. `containers` are not sealed: they only say how our elements leave their own domain's XML.
std::string metadataFragment(const std::vector<Lease>& leases, const SealKey& key,
                             const Containers& containers, std::string_view indentation);

/// The inverse: what metadataFragment() was told of one element.
Container containerOf(std::string_view containerAttribute);

inline constexpr const char* containerAttribute = "container";

}  // namespace vfpass::domain
