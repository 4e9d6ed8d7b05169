#pragma once

#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Removes the GPU role from graphics that are part of the processor: they have no memory of their
/// own that a NIC could access. Intel's are in slot 2 of the root bus, where no card can be; AMD's
/// before Zen are in slot 1 of the root bus, the later ones
/// share a slot with functions of the processor (vendor 1022: the security processor, USB), while
/// all functions of a graphics card have vendor 1002.
void dropIntegratedGraphics(Topology& topology);

}  // namespace vfpass::inventory
