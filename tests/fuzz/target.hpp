#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/error.hpp"

namespace vfpass::fuzz {

/// Each target defines this: parses the input and checks the properties of the result. An exception
/// that leaves it is a finding.
void runTarget(std::string_view input);

/// Prints the violated property and aborts, so that libFuzzer keeps the input.
void require(bool holds, const char* property);

/// Requires that the text can be written to a terminal: printable(), with newlines.
void requirePrintable(std::string_view text);

/// Requires an Error with a printable message.
void requireSound(const Error& error);

/// Where targets create their files: in memory if the system has such a directory, because a disk
/// is a hundred times slower.
std::filesystem::path fastFolder();

void writeFile(const std::filesystem::path& file, std::string_view content);
/// Empty for a file that does not exist.
std::string contentOf(const std::filesystem::path& file);

/// The result of a parser; nullopt if it throws Error. Any other exception leaves the call.
template <typename Parse>
auto accepted(Parse parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const Error& error) {
    requireSound(error);
    return std::nullopt;
  }
}

}  // namespace vfpass::fuzz
