#pragma once

#include <string>

namespace vfpass {

/// One word for a POSIX shell, whatever is in it; as it is where that needs no quotes.
std::string shellQuoted(const std::string& word);

/// A name from outside (domain, path) as a word of a command that a remedy shows. Control
/// characters are escaped as printable() does it, so that such a command is safe to print, and
/// names nothing rather than something else.
std::string shellArgument(const std::string& name);

}  // namespace vfpass
