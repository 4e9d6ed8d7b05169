#pragma once

#include <string>

namespace vfpass {

/// Quotes any text as one word for a POSIX shell; unchanged where no quotes are needed.
std::string shellQuoted(const std::string& word);

/// Quotes an untrusted name (domain, path) as a word of a command in a remedy. Control characters
/// are escaped as by printable(), so that the command is safe to print; with such a name it refers
/// to nothing rather than to a wrong object.
std::string shellArgument(const std::string& name);

}  // namespace vfpass
