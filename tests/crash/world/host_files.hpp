#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "vfpass/pci_address.hpp"

namespace vfpass::crash {

/// The directory that is the root of the simulated host. Names are relative to it.
class HostFiles {
 public:
  explicit HostFiles(std::filesystem::path root)
      : root_(std::move(root)), changed_(std::make_shared<std::set<std::string>>()) {}

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

  /// Creates or replaces a file and its directories.
  void write(const std::string& name, const std::string& text) const;
  /// Empty if there is no such file.
  [[nodiscard]] std::string read(const std::string& name) const;
  /// At most so many bytes from the offset on; fewer at the end of the file.
  [[nodiscard]] std::string readPart(const std::string& name, std::size_t offset,
                                     std::size_t length) const;
  /// Replaces the directory by a copy, in which writes do not change this one.
  void copyTo(const std::filesystem::path& other) const;
  /// Undoes all changes of this directory, which was copied from the other one. Those in sysfs must
  /// have been made through this object or through copies of it.
  void restore(const HostFiles& original) const;
  /// Also true for a link without a target.
  [[nodiscard]] bool exists(const std::string& name) const;
  void remove(const std::string& name) const;
  /// Creates or replaces a relative symbolic link; both names are relative to the root.
  void link(const std::string& name, const std::string& target) const;

  /// The sysfs directory of a PCI function, which must exist.
  [[nodiscard]] std::string directoryOf(const std::string& function) const;
  /// Empty if the function is not bound.
  [[nodiscard]] std::string driverOf(const std::string& function) const;
  [[nodiscard]] bool hasFunction(const std::string& function) const;

 private:
  void restoreShared(const std::string& name, const HostFiles& original) const;

  std::filesystem::path root_;
  std::shared_ptr<std::set<std::string>> changed_;  // names in sysfs
};

}  // namespace vfpass::crash
