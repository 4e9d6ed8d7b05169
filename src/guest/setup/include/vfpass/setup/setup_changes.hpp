#pragma once

#include <string>
#include <vector>

#include "vfpass/guest_setup.hpp"
#include "vfpass/setup/setup_plan.hpp"

namespace vfpass::setup {

/// The state of a port after the plan's changes. Addresses outside the plan stay as they are now: a
/// network manager may have added or removed some.
NetdevState expectedState(const SetupPort& port, const NetdevState& now);

/// The first port that differs from the plan, and its missing changes; empty: none differs.
std::string pendingChanges(const SetupPlan& plan, const SetupView& view);

/// The addresses that a port loses and gets: `-10.0.0.1/24`, `+192.168.100.10/24`.
std::vector<std::string> addressChanges(const SetupPort& port);

/// Text for each change of a port: `name ens7 -> rail0`, `mtu 1500 -> 9000`, `address
/// +192.168.100.10/24`.
std::vector<std::string> describeChanges(const SetupPort& port);

/// A file's mode as four octal digits: `0644`.
std::string octal(unsigned mode);

/// The report on a plan. The caller fills in the domain and `applied`.
GuestSetupReport describeSetup(const SetupPlan& plan);

}  // namespace vfpass::setup
