#pragma once

#include <string>

#include "deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

/// Listens on `address` (numeric, empty: every address) and takes one connection.
FileDescriptor acceptOne(const std::string& address, const std::string& port,
                         const Deadline& deadline);

/// Tries until the other side listens or the deadline is over.
FileDescriptor connectTo(const std::string& host, const std::string& port,
                         const Deadline& deadline);

}  // namespace vfpass::probe
