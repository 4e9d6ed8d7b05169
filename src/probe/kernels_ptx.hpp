#pragma once

namespace vfpass::probe {

/// gpu/kernels.ptx, ended by a zero as cuModuleLoadDataEx wants it.
extern const char* const kernelsPtx;

}  // namespace vfpass::probe
