#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "guarded_helper.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// A write to sysfs that the kernel refused; `number` is its errno.
class WriteError : public Error {
 public:
  WriteError(const std::string& message, const std::string& remedy, int number)
      : Error(message, remedy), number_(number) {}
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

/// A write that did not return before its deadline. The device's lock is still held, so nothing
/// that takes that lock may be tried afterwards, not even reading its `driver_override`.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

/// Writing to files of sysfs, and reading those whose reader takes the device's lock; tests replace
/// it by a simulated kernel.
class KernelWriter {
 public:
  KernelWriter() = default;
  KernelWriter(const KernelWriter&) = delete;
  KernelWriter& operator=(const KernelWriter&) = delete;
  virtual ~KernelWriter() = default;

  /// Writes `text` with one write(2). `object` names the device in messages. Throws WriteError or
  /// TimeoutError.
  virtual void write(const std::string& path, std::string_view text, const std::string& object,
                     std::chrono::milliseconds deadline) = 0;
  /// The file's text, up to a page. Throws TimeoutError, and Error where it cannot be read.
  virtual std::string read(const std::string& path, const std::string& object,
                           std::chrono::milliseconds deadline) = 0;
};

/// Writes and reads from a guarded helper, so that a call that never returns costs only its
/// deadline.
class GuardedWriter final : public KernelWriter {
 public:
  explicit GuardedWriter(const Root& root) : root_(root) {}
  void write(const std::string& path, std::string_view text, const std::string& object,
             std::chrono::milliseconds deadline) override;
  std::string read(const std::string& path, const std::string& object,
                   std::chrono::milliseconds deadline) override;

 private:
  const Root& root_;
  GuardedHelper helper_;
};

/// `20 s`, `1.5 s`, `300 ms`.
std::string durationText(std::chrono::milliseconds duration);

}  // namespace vfpass::host
