#pragma once

#include <string>

#include "network_files.hpp"

namespace vfpass::setup {

/// Module options that disable NVLink in the guest's NVIDIA driver: without them a GPU on an
/// NVSwitch board initializes only after a fabric manager has set up the fabric.
WantedFile nvlinkOptions();

/// Remaining steps until the driver uses the options; empty: it already does.
std::string nvlinkNote(const SetupView& view);

}  // namespace vfpass::setup
