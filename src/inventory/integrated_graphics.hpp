#pragma once

#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Takes the role of a GPU from graphics that are part of the processor: they have no memory of
/// their own and nothing that a NIC could reach. Intel's sit in slot 2 of the root bus, where no
/// card can be; AMD's share a slot with functions of the processor (vendor 1022: the security
/// processor, USB), while all functions of a graphics card have vendor 1002.
void dropIntegratedGraphics(Topology& topology);

}  // namespace vfpass::inventory
