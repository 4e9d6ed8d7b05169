#pragma once

#include <optional>
#include <string>

#include "vfpass/identifiers.hpp"

namespace vfpass {

/// An `<interface>` of a domain's XML.
struct DomainInterface {
  std::string alias;              ///< empty: none
  std::optional<MacAddress> mac;  ///< libvirt generates one for every interface that it stores
  std::string model;              ///< `virtio`; empty: libvirt's default
  std::string teaming;            ///< `persistent`, `transient`; empty: none

  auto operator<=>(const DomainInterface&) const = default;
};

}  // namespace vfpass
