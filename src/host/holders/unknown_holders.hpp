#pragma once

#include <chrono>
#include <vector>

#include "holders/function_facts.hpp"
#include "holders/link_survey.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Whether RDMA devices of other network namespaces are visible to this process (`rdma system`:
/// netns shared or exclusive).
enum class RdmaVisibility { all, ownNamespace };

/// Does not query hosts without RDMA devices, because that would load ib_core.
RdmaVisibility readRdmaVisibility(const Root& root, std::chrono::milliseconds deadline);

/// Reports a function with a host driver whose users are not observable: its driver exposes it to
/// programs, a virtual device was created on it, or it should have a netdev but none is found.
std::vector<Holder> unknownHolders(const FunctionFacts& function, const LinkSurvey& survey,
                                   RdmaVisibility rdma);

}  // namespace vfpass::host
