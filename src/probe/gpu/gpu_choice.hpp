#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "gpu/cuda_driver.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::probe {

/// Which GPU to use: a CUDA device index, or a PCI address in the guest, which unlike CUDA's order
/// depends neither on CUDA_DEVICE_ORDER nor on CUDA_VISIBLE_DEVICES.
using GpuChoice = std::variant<int, PciAddress>;

/// Reads `0` or `0000:05:00.0` (also without domain). Throws Error for anything else.
GpuChoice parseGpuChoice(std::string_view text);

/// `GPU 0`, `GPU 0000:05:00.0`
std::string describe(const GpuChoice& choice);

/// The GPU's PCI address as CUDA writes it, in lower case. Throws CudaError.
std::string pciAddressOf(const CudaDriver& driver, CudaDevice device);

/// Throws Error if CUDA has no such GPU; the message then lists those that it has.
CudaDevice findGpu(const CudaDriver& driver, const GpuChoice& choice);

}  // namespace vfpass::probe
