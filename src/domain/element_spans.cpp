#include "element_spans.hpp"

#include "bad_xml.hpp"
#include "tag_reader.hpp"

namespace vfpass::domain {

// pugixml reports where an element starts but not where it ends, and it accepts nesting of any
// depth, which overflows the stack of anything that walks the tree. One pass over the text solves
// both.
std::vector<ElementSpan> scanElements(std::string_view xml) {
  std::vector<ElementSpan> spans;
  std::vector<std::size_t> open;  // indexes into spans
  TagReader reader(xml);
  while (const auto tag = reader.next()) {
    if (tag->kind == Tag::Kind::end) {
      if (open.empty()) {
        throw badXml("end tag without a start tag");
      }
      spans[open.back()].contentEnd = tag->begin;
      spans[open.back()].end = tag->end;
      open.pop_back();
      continue;
    }
    if (open.size() >= maxNesting) {
      throw badXml("nested too deeply");
    }
    if (tag->kind == Tag::Kind::start) {
      open.push_back(spans.size());
    }
    spans.push_back({tag->begin, tag->end, tag->end, tag->end});
  }
  if (!open.empty() || spans.empty()) {
    throw badXml("the text ends inside an element");
  }
  return spans;
}

}  // namespace vfpass::domain
