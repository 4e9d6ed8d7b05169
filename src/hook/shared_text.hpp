#pragma once

#include <cstddef>
#include <string_view>

namespace vfpass::hook {

/// A text that the worker leaves to its supervisor. Not a pipe: the worker may block in the kernel
/// for good, and must then hold nothing that libvirt reads, and the text may be larger than what a
/// pipe holds. Anonymous memory has no path that an AppArmor profile would have to permit.
class SharedText {
 public:
  /// Memory is used only for what is put. Throws Error.
  SharedText();
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;
  ~SharedText();

  /// In the worker. Throws Error for more than 32 MiB.
  void put(std::string_view text);

  /// In the supervisor, after the worker has ended: the text, empty if none was put.
  [[nodiscard]] std::string_view get() const;

 private:
  struct Memory;
  Memory* memory_;
};

}  // namespace vfpass::hook
