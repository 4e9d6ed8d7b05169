#pragma once

#include <iosfwd>

#include "vfpass/guest_setup.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// `vfpass guest-setup`: each file as a unified diff, then the immediate changes to the interfaces.
/// JSON: docs/json/guest-setup.schema.json.
void writeGuestSetup(std::ostream& out, const GuestSetupReport& report, const Style& style);

}  // namespace vfpass::report
