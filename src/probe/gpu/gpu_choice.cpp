#include "gpu/gpu_choice.hpp"

#include <array>
#include <cstdlib>
#include <vector>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

std::vector<CudaDevice> allGpus(const CudaDriver& driver) {
  int count = 0;
  driver.check(driver.deviceCount(&count), "cannot count GPUs");
  std::vector<CudaDevice> devices;
  for (int index = 0; index < count; ++index) {
    CudaDevice device = 0;
    driver.check(driver.deviceGet(&device, index), "cannot open GPU " + std::to_string(index));
    devices.push_back(device);
  }
  return devices;
}

bool matches(const CudaDriver& driver, CudaDevice device, std::size_t index,
             const GpuChoice& choice) {
  if (const int* wanted = std::get_if<int>(&choice)) {
    return static_cast<std::size_t>(*wanted) == index;
  }
  return parsePciAddress(pciAddressOf(driver, device)) == std::get<PciAddress>(choice);
}

// `GPU-` and hexadecimal digits; question marks instead of digits for a GPU that nobody has used.
std::string uuidOf(const PciAddress& address, const SysfsReader& files) {
  constexpr std::string_view key = "GPU UUID:";
  const std::string path = "/proc/driver/nvidia/gpus/" + toString(address) + "/information";
  for (const std::string& line : splitLines(files.textOrEmpty(path))) {
    if (line.starts_with(key)) {
      const std::string uuid(trim(std::string_view(line).substr(key.size())));
      return uuid.starts_with("GPU-") && uuid.find('?') == std::string::npos ? uuid : "";
    }
  }
  return "";
}

}  // namespace

GpuChoice parseGpuChoice(std::string_view text) {
  constexpr unsigned maxIndex = 1023;
  if (const auto index = parseNumber(text); index && *index <= maxIndex) {
    return static_cast<int>(*index);
  }
  if (const auto address = parsePciAddress(text)) {
    return *address;
  }
  throw Error("invalid GPU " + printable(text),
              "use a CUDA device index such as 0, or a PCI address in the guest such as "
              "0000:05:00.0",
              ExitCode::badInput);
}

std::string describe(const GpuChoice& choice) {
  if (const int* index = std::get_if<int>(&choice)) {
    return "GPU " + std::to_string(*index);
  }
  return "GPU " + toString(std::get<PciAddress>(choice));
}

void hideOtherGpus(const GpuChoice& choice, const SysfsReader& files) {
  const auto* address = std::get_if<PciAddress>(&choice);
  if (address == nullptr) {
    return;
  }
  constexpr int keepExisting = 0;
  const std::string uuid = uuidOf(*address, files);
  if (!uuid.empty()) {
    ::setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), keepExisting);
  }
}

std::string pciAddressOf(const CudaDriver& driver, CudaDevice device) {
  std::array<char, 32> text{};
  driver.check(driver.devicePciBusId(text.data(), text.size() - 1, device),
               "cannot read the GPU's PCI address");
  return toLower(text.data());
}

CudaDevice findGpu(const CudaDriver& driver, const GpuChoice& choice) {
  // Compared here and not by cuDeviceGetByPCIBusId, which returns the same error for an address
  // that it cannot read and for one without a GPU.
  const std::vector<CudaDevice> devices = allGpus(driver);
  std::vector<std::string> others;
  for (std::size_t index = 0; index < devices.size(); ++index) {
    if (matches(driver, devices[index], index, choice)) {
      return devices[index];
    }
    others.push_back(std::to_string(index) + " (" + pciAddressOf(driver, devices[index]) + ")");
  }
  throw Error("cannot open " + describe(choice) + ": CUDA has " +
                  (others.empty() ? "no GPU" : "only " + join(others, ", ")),
              others.empty() ? "run `vfpass-probe inventory` and see gpus.libcuda"
                             : "choose one of these; `vfpass-probe inventory` shows GPUs that CUDA "
                               "does not have");
}

}  // namespace vfpass::probe
