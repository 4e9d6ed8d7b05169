#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/kernel.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::apply {

/// What running a plan needs. References must outlive the call.
struct Tools {
  Kernel& kernel;
  state::Database& database;
  Hypervisor* hypervisor = nullptr;  ///< none in the hook: steps on domains are not for it
  const domain::Templates& templates;
  std::filesystem::path runDirectory;
  std::chrono::milliseconds lockPatience{60000};
  std::chrono::milliseconds guestPatience{60000};  ///< for a guest to let go of a device
  std::function<void(const Action&)> onAction = [](const Action&) {};
};

}  // namespace vfpass::apply
