#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

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

/// One of several writes that run in parallel.
struct DeviceWrite {
  PciAddress device;
  std::string path;
  std::string text;
};

/// Writes files of sysfs, and reads those whose read takes the device's lock; tests substitute a
/// simulated kernel. `device` is the device that the call concerns: messages name it, and the
/// helper is marked with it while the call is pending in the kernel (CallMark).
class KernelWriter {
 public:
  KernelWriter() = default;
  KernelWriter(const KernelWriter&) = delete;
  KernelWriter& operator=(const KernelWriter&) = delete;
  virtual ~KernelWriter() = default;

  /// Writes `text` with one write(2). Throws WriteError or TimeoutError.
  virtual void write(const std::string& path, std::string_view text, const PciAddress& device,
                     std::chrono::milliseconds deadline) = 0;
  /// Runs all writes in parallel and returns when each has ended or the deadline has passed. The
  /// result has, in the same order, null or the exception that write() would have thrown.
  virtual std::vector<std::exception_ptr> writeTogether(const std::vector<DeviceWrite>& writes,
                                                        std::chrono::milliseconds deadline) = 0;
  /// Returns the file's text, up to one page. Throws TimeoutError, and Error when it cannot be
  /// read.
  virtual std::string read(const std::string& path, const PciAddress& device,
                           std::chrono::milliseconds deadline) = 0;
};

/// The reply of a guarded helper.
struct HelperReply {
  bool finished = false;  ///< false: the deadline passed and the helper is still running
  int error = 0;          ///< errno of the call; ECHILD: the helper was killed
  std::string bytes;      ///< the bytes read
};

/// A guarded child that serves a series of calls on open files passed to it:
/// many short writes need one process instead of two each. It ends with this object. A helper that
/// hangs is abandoned, and the next call starts another one. Not thread-safe.
/// During a call the helper has the mark `name` (CallMark), at most 15 characters.
class GuardedHelper {
 public:
  /// Maximum length of a write or read: one page, the limit of sysfs.
  static constexpr std::size_t limit = 4096;

  /// One write(2) of `text`.
  HelperReply write(int file, std::string_view text, std::string_view name,
                    std::chrono::milliseconds deadline);
  /// One read(2) of up to a page.
  HelperReply read(int file, std::string_view name, std::chrono::milliseconds deadline);

  /// write() in two halves, so that several helpers can work in parallel.
  void beginWrite(int file, std::string_view text, std::string_view name);
  HelperReply finish(std::chrono::milliseconds timeout);

 private:
  void send(int file, std::string_view request);
  HelperReply receive();
  void start();

  FileDescriptor socket_;  // closed: there is no helper
};

/// Writes and reads in a guarded helper, so that a call that never returns only delays the caller
/// until the deadline. Parallel writes have one helper each.
class GuardedWriter final : public KernelWriter {
 public:
  explicit GuardedWriter(const Root& root) : root_(root) {}
  void write(const std::string& path, std::string_view text, const PciAddress& device,
             std::chrono::milliseconds deadline) override;
  std::vector<std::exception_ptr> writeTogether(const std::vector<DeviceWrite>& writes,
                                                std::chrono::milliseconds deadline) override;
  std::string read(const std::string& path, const PciAddress& device,
                   std::chrono::milliseconds deadline) override;

 private:
  const Root& root_;
  GuardedHelper helper_;
};

/// The remedy when root gets EPERM from the driver for a file below a PF.
inline constexpr const char* eswitchRemedy =
    "configure the VFs where the embedded switch of this PF is managed, because the driver does "
    "not let this host do it (`vfpass doctor`: dpu-mode, eswitch)";

/// The remedy when a write to this file of sysfs fails with this errno.
std::string writeRemedy(const std::string& path, int error, bool asRoot);

/// `20 s`, `1.5 s`, `300 ms`.
std::string durationText(std::chrono::milliseconds duration);

}  // namespace vfpass::host
