#pragma once

#include <utility>

namespace vfpass {

/// Runs its function at the end of the scope unless disarmed; for rolling back a change. The
/// function must not throw.
template <typename Function>
class ScopeGuard {
 public:
  explicit ScopeGuard(Function function) : function_(std::move(function)) {}
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  ~ScopeGuard() {
    if (armed_) {
      function_();
    }
  }
  void disarm() { armed_ = false; }

 private:
  Function function_;
  bool armed_ = true;
};

}  // namespace vfpass
