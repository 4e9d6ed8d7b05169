#pragma once

#include <chrono>
#include <vector>

#include "holders/function_facts.hpp"
#include "holders/link_survey.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Uses of the function's netdevs. A netdev in our namespace is idle when it is down and has no
/// master, no addresses and no devices on top. A netdev in another namespace always counts as in
/// use, because it was moved there deliberately.
std::vector<Holder> netdevHolders(const FunctionFacts& function, const LinkSurvey& survey);

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
