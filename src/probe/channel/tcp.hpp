#pragma once

#include <string>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

/// Listens on `address` (numeric; empty for every address) and accepts one connection.
FileDescriptor acceptOne(const std::string& address, const std::string& port,
                         const Deadline& deadline);

/// Retries until the other side listens or the deadline has passed.
FileDescriptor connectTo(const std::string& host, const std::string& port,
                         const Deadline& deadline);

}  // namespace vfpass::probe
