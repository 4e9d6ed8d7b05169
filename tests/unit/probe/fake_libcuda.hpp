#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace vfpass::probe {

/// tests/fake/cuda with these settings, for as long as the object exists.
class FakeLibcuda {
 public:
  using Settings = std::map<std::string, std::string>;

  explicit FakeLibcuda(Settings settings = {}) : settings_(std::move(settings)) {
    for (const auto& [name, value] : settings_) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  FakeLibcuda(const FakeLibcuda&) = delete;
  FakeLibcuda& operator=(const FakeLibcuda&) = delete;
  ~FakeLibcuda() {
    for (const auto& [name, value] : settings_) {
      ::unsetenv(name.c_str());
    }
  }

  [[nodiscard]] static std::vector<std::string> path() {
    return {VFPASS_BINARY_DIR "/tests/fake/cuda/libcuda.so.1"};
  }

 private:
  Settings settings_;
};

}  // namespace vfpass::probe
