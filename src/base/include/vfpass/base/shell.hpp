#pragma once

#include <string>

namespace vfpass {

/// One word for a POSIX shell, whatever is in it; as it is where that needs no quotes.
std::string shellQuoted(const std::string& word);

}  // namespace vfpass
