#pragma once

#include <string>
#include <string_view>

namespace vfpass::domain {

/// Why the domain may use other host devices than parseDomain() reads from its
/// `<qemu:commandline>`; empty if it does not. Throws like parseDomain().
std::string doubtAboutArguments(std::string_view xml);

}  // namespace vfpass::domain
