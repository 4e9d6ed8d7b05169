#include "element_spans.hpp"

#include "bad_xml.hpp"

namespace vfpass::domain {
namespace {

// pugixml reports where an element starts but not where it ends, and it accepts nesting of any
// depth, which overflows the stack of anything that walks the tree. One pass over the text solves
// both.
class Scanner {
 public:
  explicit Scanner(std::string_view xml) : xml_(xml) {}

  std::vector<ElementSpan> scan() {
    for (auto at = xml_.find('<'); at != std::string_view::npos; at = xml_.find('<', at)) {
      at = readMarkup(at);
    }
    if (!open_.empty() || spans_.empty()) {
      throw badXml("the text ends inside an element");
    }
    return std::move(spans_);
  }

 private:
  std::size_t readMarkup(std::size_t at) {
    const auto rest = xml_.substr(at);
    if (rest.starts_with("<!--")) {
      return after("-->", at + 4);
    }
    if (rest.starts_with("<![CDATA[")) {
      return after("]]>", at + 9);
    }
    if (rest.starts_with("<?")) {
      return after("?>", at + 2);
    }
    if (rest.starts_with("<!")) {
      // No domain XML has a DOCTYPE, and its entities could change the meaning of the text.
      throw badXml("contains a document type declaration");
    }
    return rest.starts_with("</") ? readEndTag(at) : readStartTag(at);
  }

  std::size_t readStartTag(std::size_t at) {
    const auto end = startTagEnd(at + 1);
    const bool closed = xml_[end - 2] == '/';
    if (open_.size() >= maxNesting || spans_.size() >= maxElements) {
      throw badXml("too many elements, or nested too deeply");
    }
    if (!closed) {
      open_.push_back(spans_.size());
    }
    spans_.push_back({at, end, end, end});
    return end;
  }

  std::size_t readEndTag(std::size_t at) {
    if (open_.empty()) {
      throw badXml("end tag without a start tag");
    }
    const auto end = after(">", at);
    spans_[open_.back()].contentEnd = at;
    spans_[open_.back()].end = end;
    open_.pop_back();
    return end;
  }

  // A `>` inside an attribute's quotes does not end the tag.
  std::size_t startTagEnd(std::size_t at) const {
    for (; at < xml_.size() && xml_[at] != '>'; ++at) {
      if (xml_[at] == '"' || xml_[at] == '\'') {
        at = after(xml_.substr(at, 1), at + 1) - 1;
      }
    }
    if (at >= xml_.size()) {
      throw badXml("the text ends inside a tag");
    }
    return at + 1;
  }

  std::size_t after(std::string_view mark, std::size_t from) const {
    const auto at = xml_.find(mark, from);
    if (at == std::string_view::npos) {
      throw badXml("the text ends inside markup");
    }
    return at + mark.size();
  }

  std::string_view xml_;
  std::vector<ElementSpan> spans_;
  std::vector<std::size_t> open_;  // indexes into spans_
};

}  // namespace

std::vector<ElementSpan> scanElements(std::string_view xml) { return Scanner(xml).scan(); }

}  // namespace vfpass::domain
