#include "vfpass/base/driver_name.hpp"

#include <algorithm>
#include <array>

namespace vfpass {

bool isDriverName(std::string_view name) {
  constexpr std::size_t longest = 63;  // a module name has at most 55 characters (MODULE_NAME_LEN)
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyz"
      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  // modprobe would parse a name with a leading `-` as an option if a caller omits `--`.
  return !name.empty() && name.size() <= longest && !name.starts_with('-') &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

// Driver names and module names: KBUILD_MODNAME, which the variants use, has underscores.
bool isVfioDriver(std::string_view driver) {
  constexpr std::array<std::string_view, 5> drivers{"vfio-pci", "mlx5_vfio_pci", "mlx5-vfio-pci",
                                                    "nvgrace_gpu_vfio_pci", "nvgrace-gpu-vfio-pci"};
  return std::ranges::find(drivers, driver) != drivers.end();
}

}  // namespace vfpass
