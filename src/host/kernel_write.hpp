#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "guarded_helper.hpp"
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

/// One of several writes that are to run at the same time.
struct DeviceWrite {
  PciAddress device;
  std::string path;
  std::string text;
};

/// Writing to files of sysfs, and reading those whose reader takes the device's lock; tests replace
/// it by a simulated kernel. `device` is the one that the call is about: messages name it, and
/// while the call waits in the kernel every process can see for which device it does.
class KernelWriter {
 public:
  KernelWriter() = default;
  KernelWriter(const KernelWriter&) = delete;
  KernelWriter& operator=(const KernelWriter&) = delete;
  virtual ~KernelWriter() = default;

  /// Writes `text` with one write(2). Throws WriteError or TimeoutError.
  virtual void write(const std::string& path, std::string_view text, const PciAddress& device,
                     std::chrono::milliseconds deadline) = 0;
  /// All of these at the same time, and returns when each has ended or the deadline has passed. In
  /// their order, null or what write() would have thrown.
  virtual std::vector<std::exception_ptr> writeTogether(const std::vector<DeviceWrite>& writes,
                                                        std::chrono::milliseconds deadline) = 0;
  /// The file's text, up to a page. Throws TimeoutError, and Error where it cannot be read.
  virtual std::string read(const std::string& path, const PciAddress& device,
                           std::chrono::milliseconds deadline) = 0;
};

/// Writes and reads from a guarded helper, so that a call that never returns costs only its
/// deadline. Writes at the same time have a helper each.
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

/// What to do when a driver answers EPERM to root who sets up VFs: mlx5 does so for a PF that does
/// not manage its embedded switch (mlx5_esw_allowed).
inline constexpr const char* eswitchRemedy =
    "The PF does not manage its embedded switch, as on a BlueField in DPU mode: set up the VFs on "
    "the card's Arm side, or switch the card to NIC mode and power-cycle the host.";

/// What to do when a write to this file of sysfs fails with this errno.
std::string writeRemedy(const std::string& path, int error, bool asRoot);

/// `20 s`, `1.5 s`, `300 ms`.
std::string durationText(std::chrono::milliseconds duration);

}  // namespace vfpass::host
