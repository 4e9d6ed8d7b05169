#pragma once

#include "network_files.hpp"

namespace vfpass::setup {

/// The netplan configuration of these ports, without the comment that marks the file as ours.
std::string netplanText(const std::vector<PlacedPort>& ports, const SetupView& view);

}  // namespace vfpass::setup
