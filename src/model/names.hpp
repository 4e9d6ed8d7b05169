#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace vfpass {

/// Maps the values of an enumeration to their names and back.
template <typename Enumeration, std::size_t size>
using Names = std::array<std::pair<Enumeration, std::string_view>, size>;

template <typename Enumeration, std::size_t size>
constexpr std::string_view nameOf(const Names<Enumeration, size>& names, Enumeration value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) {
      return name;
    }
  }
  return "?";
}

template <typename Enumeration, std::size_t size>
constexpr std::optional<Enumeration> valueOf(const Names<Enumeration, size>& names,
                                             std::string_view name) {
  for (const auto& [value, candidate] : names) {
    if (candidate == name) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace vfpass
