#pragma once

#include <string>

#include "network_files.hpp"

namespace vfpass::guest {

/// Options that make NVIDIA's driver in the guest leave NVLink alone: without them a GPU of an
/// NVSwitch board initializes only once a fabric manager has set the fabric up.
WantedFile nvlinkOptions();

/// What is left to do until the driver has them; empty: it has.
std::string nvlinkNote(const SetupView& view);

}  // namespace vfpass::guest
