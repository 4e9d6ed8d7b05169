#include <array>

#include "check.hpp"
#include "module_file.hpp"

namespace vfpass::doctor {
namespace {

/// When the two modules for this kernel were built, in seconds since 1970.
struct Built {
  std::uint64_t gpu = 0;
  std::uint64_t ofed = 0;
};

std::optional<Built> built(const View& view) {
  const auto gpu = buildTime(view, "nvidia_peermem");
  const auto ofed = buildTime(view, "mlx_compat");
  return gpu && ofed ? std::optional(Built{*gpu, *ofed}) : std::nullopt;
}

std::string withoutPeerMemory(const View& view) {
  return view.moduleLoaded("nvidia_peermem") || built(view)
             ? ""
             : "nvidia_peermem is not loaded on the host; guests load it";
}

// For a module that is not loaded, only the files' times are known; copying a module changes them.
void checkBuildOrder(const Built& times, const std::string& remedy, Results& results) {
  const std::string expected = "nvidia_peermem built after OFED's modules";
  if (times.gpu < times.ofed) {
    results.failed("", expected,
                   "its file is " + std::to_string(times.ofed - times.gpu) +
                       " seconds older than OFED's mlx_compat",
                   remedy);
  } else {
    results.passed("", expected, "not loaded; its file is not older than OFED's");
  }
}

// nvidia_peermem registers with OFED only if OFED was installed when it was built.
void checkDriverOrder(const View& view, Results& results) {
  const std::string expected =
      "nvidia_peermem registered with OFED and of the same version as nvidia";
  const std::string remedy =
      "reinstall the GPU driver with its own installer or package, now that OFED is installed";
  if (!view.moduleLoaded("nvidia_peermem")) {
    return checkBuildOrder(built(view).value_or(Built{}), remedy, results);
  }
  const auto versionOf = [&](const std::string& module) {
    return view.root().readText("sys/module/" + module + "/version").value_or("");
  };
  const std::string clients = "sys/kernel/mm/memory_peers";
  const bool registered =
      view.root().exists(clients + "/nv_mem") || view.root().exists(clients + "/nv_mem_nc");
  if (versionOf("nvidia_peermem") != versionOf("nvidia")) {
    results.failed(
        "", expected,
        "nvidia_peermem " + versionOf("nvidia_peermem") + ", nvidia " + versionOf("nvidia"),
        remedy);
  } else if (registered) {
    results.passed("", expected, "registered");
  } else if (view.root().exists(clients)) {
    results.failed("", expected, "OFED has no client nv_mem: nvidia_peermem was built before OFED",
                   remedy);
  } else {
    results.notObservable("", expected, "the kernel's RDMA core does not list peer memory clients",
                          "dmesg | grep -i peermem");
  }
}

constexpr std::array checks{Check{"driver-order",
                                  "nvidia_peermem must be built after the OFED that it links to",
                                  withoutPeerMemory, checkDriverOrder}};

}  // namespace

std::span<const Check> driverOrderChecks() { return checks; }

}  // namespace vfpass::doctor
