#pragma once

#include <functional>

#include "schedule/schedule.hpp"

namespace vfpass::crash {

/// A schedule with as many actors, but fewer actions and deviations, that `fails` as well, and that
/// no longer does so without any one of them.
Schedule shrink(Schedule schedule, const std::function<bool(const Schedule&)>& fails);

}  // namespace vfpass::crash
