#pragma once

namespace vfpass::probe {

/// gpu/kernels.ptx, null-terminated as cuModuleLoadDataEx requires.
extern const char* const kernelsPtx;

}  // namespace vfpass::probe
