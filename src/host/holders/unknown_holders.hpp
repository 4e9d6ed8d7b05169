#pragma once

#include <chrono>
#include <vector>

#include "holders/function_facts.hpp"
#include "holders/link_survey.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Whether RDMA devices of other network namespaces are visible from here (`rdma system`: netns
/// shared or exclusive).
enum class RdmaVisibility { all, ownNamespace };

/// Hosts without RDMA are not asked: that would load ib_core.
RdmaVisibility readRdmaVisibility(const Root& root, std::chrono::milliseconds deadline);

/// Why nobody can tell who uses a driven function: its driver hands it to programs, a virtual
/// device was made of it, or it should have a netdev and none is found.
std::vector<Holder> unknownHolders(const FunctionFacts& function, const LinkSurvey& survey,
                                   RdmaVisibility rdma);

}  // namespace vfpass::host
