#pragma once

#include <string>

#include "view.hpp"

namespace vfpass::doctor {

/// How the ports of all rails of the host get what they need (acsRulesOf): one kernel argument for
/// the whole host, after what must hold before it is added.
std::string acsRemedy(const View& view);

}  // namespace vfpass::doctor
