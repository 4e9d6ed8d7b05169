#pragma once

#include <string>

namespace vfpass::probe {

/// Version of the JSON that the probe writes and of what two probes say to each other. Both sides
/// must have the same.
constexpr int protocolVersion = 1;

/// The GNU build id of the running program in hexadecimal, as the linker computed it over the
/// file's contents (ELF note NT_GNU_BUILD_ID); empty when it was linked without one. The host reads
/// the same note from its own copy, and need not send what is there already.
std::string buildId();

}  // namespace vfpass::probe
