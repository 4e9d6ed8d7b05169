#pragma once

#include <string>
#include <vector>

#include "problem_list.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::config {

/// Reads the text of one mapping file. The result is valid only if no problem was added.
Mapping readMapping(const std::string& text, ProblemList& problems);

/// The contents of host.yaml.
struct HostFile {
  HostPolicy policy;
  std::vector<SoftRocePolicy> softRoce;
};

/// Whether the text has keys of a host.yaml and not those of a mapping.
bool isHostFile(const std::string& text);

/// Reads the text of host.yaml. The result is valid only if no problem was added.
HostFile readHostFile(const std::string& text, ProblemList& problems);

}  // namespace vfpass::config
