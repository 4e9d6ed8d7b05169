#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/seal_key.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::apply {

/// What running a plan needs. References must outlive the call.
struct Tools {
  Kernel& kernel;
  state::Database& database;
  Hypervisor* hypervisor = nullptr;  ///< none in the hook: steps on domains are not for it
  const domain::Templates& templates;
  const SealKey& sealKey;  ///< for metadata; the hook, which writes none, has none
  std::filesystem::path runDirectory;
  std::chrono::milliseconds lockPatience{60000};
  /// When everything has to be over, waiting and working together: the hook's one deadline.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  std::chrono::milliseconds guestPatience{60000};  ///< for a guest to let go of a device
  /// For a holder that is about to release a device: QEMU that has just unplugged it, an earlier
  /// write that is about to return from the kernel.
  std::chrono::milliseconds holderPatience{5000};
  std::function<void(const Action&)> onAction = [](const Action&) {};

  /// How long to wait for a lock now: never beyond the deadline.
  [[nodiscard]] std::chrono::milliseconds patience() const;
};

}  // namespace vfpass::apply
