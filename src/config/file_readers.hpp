#pragma once

#include <string>

#include "problem_list.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::config {

/// The text of one mapping file. What it returns is of use only when no problem was added.
Mapping readMapping(const std::string& text, ProblemList& problems);

/// The text of host.yaml, likewise.
HostPolicy readHostPolicy(const std::string& text, ProblemList& problems);

}  // namespace vfpass::config
