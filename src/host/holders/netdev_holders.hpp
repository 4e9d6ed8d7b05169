#pragma once

#include <vector>

#include "holders/function_facts.hpp"
#include "holders/link_survey.hpp"
#include "vfpass/holder.hpp"

namespace vfpass::host {

/// Whether any namespace has a netdev of this function.
bool hasNetdev(const FunctionFacts& function, const LinkSurvey& survey);

/// Uses of the function's netdevs. One in our namespace that is down, has no master, no addresses
/// and nothing on top of it is idle. One in another namespace is in use whatever its state:
/// somebody put it there.
std::vector<Holder> netdevHolders(const FunctionFacts& function, const LinkSurvey& survey);

}  // namespace vfpass::host
