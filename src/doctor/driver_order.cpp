#include <array>

#include "check.hpp"
#include "module_file.hpp"

namespace vfpass::doctor {
namespace {

/// When the two were built for this kernel.
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
             : "nvidia_peermem is not loaded here; guests load it";
}

// Not loaded, so only the files' times tell; who copies modules about changes those.
void checkBuildOrder(const Built& times, const std::string& remedy, Results& results) {
  const std::string expected = "nvidia_peermem built after OFED's modules";
  if (times.gpu < times.ofed) {
    results.failed("", expected,
                   "its file is " + std::to_string(times.ofed - times.gpu) +
                       " seconds older than OFED's mlx_compat",
                   remedy);
  } else {
    results.passed("", expected, "by the files' times, not loaded");
  }
}

// nvidia_peermem takes part in OFED's interface only when it was built with OFED there.
void checkDriverOrder(const View& view, Results& results) {
  const std::string expected = "nvidia_peermem registered with OFED, of nvidia's version";
  const std::string remedy =
      "install the GPU driver again, after OFED: dkms autoinstall --force, or its own installer";
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
    results.failed("", expected, "OFED knows no client nv_mem: it was built before OFED", remedy);
  } else {
    results.unseen("", expected, "this kernel's RDMA core lists no peer memory clients",
                   "dmesg | grep -i peermem");
  }
}

constexpr std::array checks{Check{"driver-order",
                                  "nvidia_peermem must be built after the OFED that it links to",
                                  withoutPeerMemory, checkDriverOrder}};

}  // namespace

std::span<const Check> driverOrderChecks() { return checks; }

}  // namespace vfpass::doctor
