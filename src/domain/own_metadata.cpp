#include "own_metadata.hpp"

#include <algorithm>

#include "tag_reader.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {
namespace {

// The levels of the open elements: <domain> is 0, <metadata> 1, an element of some program 2.
constexpr std::size_t programLevel = 2;

class Blanking {
 public:
  explicit Blanking(std::string_view xml) : xml_(xml), result_{std::string(xml), {}} {}

  OwnMetadata run() {
    TagReader reader(xml_);
    while (const auto tag = reader.next()) {
      if (tag->kind == Tag::Kind::end) {
        level_ -= level_ > 0 ? 1 : 0;
        leave(*tag);
        continue;
      }
      enter(*tag, reader.nameOf(*tag));
      level_ += tag->kind == Tag::Kind::start ? 1 : 0;
    }
    return std::move(result_);
  }

 private:
  void enter(const Tag& tag, std::string_view name) {
    if (level_ < programLevel) {
      inMetadata_ = level_ == 1 && name == "metadata";
      declaredAbove_ = (level_ > 0 && declaredAbove_) || namesOurs(tag);
    } else if (inMetadata_ && level_ == programLevel) {
      content_ = tag.end;
      keep_ = name.substr(name.find(':') + 1) == "domain" && (declaredAbove_ || namesOurs(tag));
      deepest_ = 0;
    } else if (inMetadata_) {
      elements_ += keep_ ? 1 : 0;
      deepest_ = std::max(deepest_, level_ - programLevel);
    }
  }

  void leave(const Tag& tag) {
    if (!inMetadata_ || level_ != programLevel) {
      return;
    }
    const bool excessive = deepest_ > maxMetadataNesting || elements_ > maxMetadataElements;
    if (keep_ && excessive) {
      result_.fault = "too many elements, or nested too deeply";
    }
    if (!keep_ || excessive) {
      std::fill(result_.xml.begin() + static_cast<std::ptrdiff_t>(content_),
                result_.xml.begin() + static_cast<std::ptrdiff_t>(tag.begin), ' ');
    }
  }

  // Only a hint: the namespace can be the value of any attribute.
  [[nodiscard]] bool namesOurs(const Tag& tag) const {
    return xml_.substr(tag.begin, tag.end - tag.begin).find(metadataNamespace) !=
           std::string_view::npos;
  }

  std::string_view xml_;
  OwnMetadata result_;
  std::size_t level_ = 0;
  bool inMetadata_ = false;
  bool declaredAbove_ = false;  // on <domain> or <metadata>
  std::size_t elements_ = 0;    // in all elements that may be ours
  // Of the last element of a program:
  bool keep_ = false;
  std::size_t content_ = 0;
  std::size_t deepest_ = 0;
};

}  // namespace

OwnMetadata withoutForeignMetadata(std::string_view xml) { return Blanking(xml).run(); }

}  // namespace vfpass::domain
