#pragma once

#include <string_view>

namespace vfpass {

/// The text of one line of /dev/kmsg, `priority,sequence,time,flags;text`
/// (Documentation/ABI/testing/dev-kmsg). Empty for what is not the kernel's own message: lines of
/// programs, which have another facility, properties of the record before, and anything else. Not
/// printable: devices choose parts of it.
std::string_view kernelText(std::string_view line);

/// Whether a message of the kernel explains no failure although it may have the words of one: it
/// repeats parameters (its command line, the environment of init, a module's unknown parameter), or
/// states that a module which is loaded is not signed, or that a card lacks a capability for dumps.
bool explainsNothing(std::string_view text);

}  // namespace vfpass
