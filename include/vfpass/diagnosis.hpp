#pragma once

#include <string>

#include "vfpass/finding.hpp"

namespace vfpass {

/// One result of a host check, with the purpose of the check.
struct Diagnosis {
  Finding finding;  ///< its subject is a device, a rail or a file; empty: the host
  std::string why;
};

}  // namespace vfpass
