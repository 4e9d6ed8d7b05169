#include "drivers/bind_drivers.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "sysfs/pci_function.hpp"

namespace vfpass::host {

std::vector<std::exception_ptr> bindDrivers(const Root& root,
                                            const std::vector<BindDriver>& actions,
                                            const BindOne& bindOne) {
  std::vector<std::exception_ptr> failures(actions.size());
  const auto attempt = [&](std::size_t at, std::size_t worker) {
    try {
      bindOne(actions[at], worker);
    } catch (...) {
      failures[at] = std::current_exception();
    }
  };
  std::vector<std::size_t> vfs;
  for (std::size_t at = 0; at < actions.size(); ++at) {
    if (root.exists(functionPath(actions[at].function) + "/physfn")) {
      vfs.push_back(at);
    } else {
      attempt(at, 0);
    }
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&](std::size_t worker) {
    for (std::size_t turn = next++; turn < vfs.size(); turn = next++) {
      attempt(vfs[turn], worker);
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t worker = 1; worker < std::min(bindingWorkers, vfs.size()); ++worker) {
    others.emplace_back(work, worker);
  }
  work(0);
  others.clear();
  return failures;
}

}  // namespace vfpass::host
