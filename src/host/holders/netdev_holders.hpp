#pragma once

#include <vector>

#include "holders/function_facts.hpp"
#include "holders/link_survey.hpp"
#include "vfpass/holder.hpp"

namespace vfpass::host {

/// Whether any namespace has a netdev of this function.
bool hasNetdev(const FunctionFacts& function, const LinkSurvey& survey);

/// Uses of the function's netdevs. A netdev in our namespace is idle when it is down and has no
/// master, no addresses and no devices on top. A netdev in another namespace always counts as in
/// use, because it was moved there deliberately.
std::vector<Holder> netdevHolders(const FunctionFacts& function, const LinkSurvey& survey);

}  // namespace vfpass::host
