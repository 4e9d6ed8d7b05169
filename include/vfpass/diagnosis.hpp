#pragma once

#include <string>

#include "vfpass/finding.hpp"

namespace vfpass {

/// One result of a check of the host, with what the check is good for.
struct Diagnosis {
  Finding finding;  ///< its subject is a device, a rail, a file; empty: the host
  std::string why;
};

}  // namespace vfpass
