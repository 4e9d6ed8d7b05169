#include "gpu/diagnose_cuda.hpp"

#include <algorithm>

namespace vfpass::probe {
namespace {

/// Below `/sys/devices/pci0000:00/` without a port in between.
bool isOnRootBus(const PciFunction& function) {
  return std::ranges::count(function.path, '/') == 4;
}

bool isMigWithoutInstance(const MigState& state) { return state.enabled && state.instances == 0; }

/// The kernel's part of a status that only says that CUDA found nothing usable.
std::optional<CudaProblem> kernelProblem(const GpuSurroundings& surroundings) {
  if (surroundings.gpus.empty()) {
    return CudaProblem::noGpu;
  }
  if (surroundings.moduleVersion.empty()) {
    return CudaProblem::moduleNotLoaded;
  }
  if (std::ranges::none_of(surroundings.gpus,
                           [](const PciFunction& gpu) { return gpu.driver == "nvidia"; })) {
    return CudaProblem::notBound;
  }
  return std::nullopt;
}

CudaProblem refine(CudaProblem problem, const GpuSurroundings& surroundings) {
  if (problem == CudaProblem::noDevice &&
      std::ranges::any_of(surroundings.mig, isMigWithoutInstance)) {
    return CudaProblem::migWithoutInstance;
  }
  if (problem == CudaProblem::notInitialized &&
      std::ranges::any_of(surroundings.gpus, isOnRootBus)) {
    return CudaProblem::onRootBus;
  }
  if (problem == CudaProblem::unknown && !surroundings.uvm) {
    return CudaProblem::uvmMissing;
  }
  return problem;
}

}  // namespace

CudaProblem diagnoseCuda(std::optional<int> status, const GpuSurroundings& surroundings) {
  if (!status) {
    return surroundings.moduleVersion.empty() ? CudaProblem::driverMissing
                                              : CudaProblem::libraryMissing;
  }
  const CudaProblem problem = cudaProblemOf(*status);
  switch (problem) {
    case CudaProblem::noDevice:
    case CudaProblem::notInitialized:
    case CudaProblem::osCallFailed:
    case CudaProblem::unknown:
      return kernelProblem(surroundings).value_or(refine(problem, surroundings));
    default:
      return problem;
  }
}

}  // namespace vfpass::probe
