#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "gpu/cuda_driver.hpp"
#include "system/sysfs_reader.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::probe {

/// Which GPU to use: a CUDA device index, or a PCI address in the guest, which unlike CUDA's order
/// depends neither on CUDA_DEVICE_ORDER nor on CUDA_VISIBLE_DEVICES.
using GpuChoice = std::variant<int, PciAddress>;

/// Reads `0` or `0000:05:00.0` (also without domain). Throws Error for anything else.
GpuChoice parseGpuChoice(std::string_view text);

/// `GPU 0`, `GPU 0000:05:00.0`
std::string describe(const GpuChoice& choice);

/// Lets CUDA initialize no GPU but this one, with CUDA_VISIBLE_DEVICES: cuInit takes longer with
/// each GPU of the guest (docs/performance.md). Does nothing for a device index, if the variable is
/// set already, and if NVIDIA's driver does not tell the GPU's UUID, which it knows once the GPU
/// has been used. Takes effect only before the first CudaDriver of the process.
void hideOtherGpus(const GpuChoice& choice, const SysfsReader& files = SysfsReader());

/// The GPU's PCI address as CUDA writes it, in lower case. Throws CudaError.
std::string pciAddressOf(const CudaDriver& driver, CudaDevice device);

/// Throws Error if CUDA has no such GPU; the message then lists those that it has.
CudaDevice findGpu(const CudaDriver& driver, const GpuChoice& choice);

}  // namespace vfpass::probe
