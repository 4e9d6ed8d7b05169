#pragma once

#include <string>
#include <vector>

#include "problem_list.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::config {

/// The text of one mapping file. What it returns is of use only when no problem was added.
Mapping readMapping(const std::string& text, ProblemList& problems);

/// What host.yaml holds.
struct HostFile {
  HostPolicy policy;
  std::vector<SoftRocePolicy> softRoce;
};

/// The text of host.yaml, likewise.
HostFile readHostFile(const std::string& text, ProblemList& problems);

}  // namespace vfpass::config
