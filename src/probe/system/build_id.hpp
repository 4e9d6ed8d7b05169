#pragma once

#include <string>

namespace vfpass::probe {

/// Version of the probe's JSON output and of the protocol between two probes. Both sides must use
/// the same version.
constexpr int protocolVersion = 1;

/// The GNU build id of the running program in hexadecimal, as the linker computed it over the
/// file's contents (ELF note NT_GNU_BUILD_ID); empty when it was linked without one. The host reads
/// the same note from its own copy, and does not send a copy that the guest already has.
std::string buildId();

}  // namespace vfpass::probe
