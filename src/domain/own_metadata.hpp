#pragma once

#include <string>
#include <string_view>

namespace vfpass::domain {

/// Limits of our own metadata element. vfpass writes at most five levels.
inline constexpr std::size_t maxMetadataNesting = 16;
inline constexpr std::size_t maxMetadataElements = 100'000;

/// A domain XML in which only our own metadata element has content.
struct OwnMetadata {
  /// As long as the original: the content of all other elements in `<metadata>` is blank.
  std::string xml;
  /// Why the content of our element is blank, too; empty if it is not.
  std::string fault;
};

/// libvirt keeps everything that somebody writes into `<metadata>`, as deep as libxml2 parses it
/// (256 levels) and as much as fits. So foreign metadata must not make the domain unreadable, or
/// cost memory: it never reaches the parser. Throws as TagReader does.
OwnMetadata withoutForeignMetadata(std::string_view xml);

}  // namespace vfpass::domain
