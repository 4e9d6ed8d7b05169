#include "xml_source.hpp"

#include <algorithm>
#include <utility>

#include "vfpass/base/text.hpp"
#include "vfpass/base/unified_diff.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {

std::optional<Tag> TagReader::next() {
  while ((at_ = xml_.find('<', at_)) != std::string_view::npos) {
    if (const auto tag = readMarkup()) {
      return tag;
    }
  }
  at_ = xml_.size();
  return std::nullopt;
}

std::string_view TagReader::nameOf(const Tag& tag) const {
  const auto begin = tag.begin + (tag.kind == Tag::Kind::end ? 2 : 1);
  return xml_.substr(begin, xml_.find_first_of(" \t\r\n/>", begin) - begin);
}

std::optional<Tag> TagReader::readMarkup() {
  const auto begin = at_;
  const auto rest = xml_.substr(begin);
  if (rest.starts_with("<!--")) {
    at_ = after("-->", begin + 4);
    return std::nullopt;
  }
  if (rest.starts_with("<![CDATA[")) {
    at_ = after("]]>", begin + 9);
    return std::nullopt;
  }
  if (rest.starts_with("<?")) {
    at_ = after("?>", begin + 2);
    return std::nullopt;
  }
  if (rest.starts_with("<!")) {
    // No domain XML has a DOCTYPE, and its entities could change the meaning of the text.
    throw badXml("contains a document type declaration");
  }
  const bool ends = rest.starts_with("</");
  at_ = ends ? after(">", begin) : startTagEnd(begin + 1);
  const auto start = xml_[at_ - 2] == '/' ? Tag::Kind::both : Tag::Kind::start;
  return Tag{begin, at_, ends ? Tag::Kind::end : start};
}

// A `>` inside an attribute's quotes does not end the tag.
std::size_t TagReader::startTagEnd(std::size_t at) const {
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

std::size_t TagReader::after(std::string_view mark, std::size_t from) const {
  const auto at = xml_.find(mark, from);
  if (at == std::string_view::npos) {
    throw badXml("the text ends inside markup");
  }
  return at + mark.size();
}

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

namespace {

// Position of the line break before `at` if only blanks lie between, otherwise npos.
std::size_t lineBreakBefore(std::string_view text, std::size_t at) {
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) {
    --at;
  }
  return at > 0 && text[at - 1] == '\n' ? at - 1 : std::string_view::npos;
}

// True for the text before an attribute's value if the attribute is a password.
bool namesPassword(std::string_view before) {
  const auto equals = trim(before);
  if (!equals.ends_with('=')) {
    return false;
  }
  const auto name = trim(equals.substr(0, equals.size() - 1));
  return name.substr(name.find_last_of(" \t\r\n'\"") + 1) == "passwd";
}

// `at` is the position of the start tag `tag`, which TagReader has read: each quote in it is
// closed.
void maskPasswords(std::string_view tag, std::size_t at, std::vector<Splice>& masks) {
  std::size_t read = 0;
  for (auto quote = tag.find_first_of("'\""); quote != std::string_view::npos;
       quote = tag.find_first_of("'\"", read)) {
    const auto end = tag.find(tag[quote], quote + 1);
    if (namesPassword(tag.substr(read, quote - read))) {
      masks.push_back({at + quote + 1, at + end, "***"});
    }
    read = end + 1;
  }
}

// Replaces the values of passwd attributes by `***`. The same words in the text of an element are
// no attribute, and a quote in it needs no second one.
std::string masked(std::string_view text) {
  std::vector<Splice> masks;
  TagReader reader(text);
  std::size_t read = 0;
  try {
    while (const auto tag = reader.next()) {
      if (tag->kind != Tag::Kind::end) {
        maskPasswords(text.substr(tag->begin, tag->end - tag->begin), tag->begin, masks);
      }
      read = tag->end;
    }
  } catch (const Error&) {
    // No domain XML: where its tags are is unknown, so all that is left may be a password.
    masks.push_back({read, text.size(), "***"});
  }
  return applySplices(text, std::move(masks));
}

}  // namespace

std::string applySplices(std::string_view text, std::vector<Splice> splices) {
  std::ranges::stable_sort(splices,
                           [](const Splice& a, const Splice& b) { return a.begin < b.begin; });
  std::string result;
  std::size_t copied = 0;
  for (const auto& splice : splices) {
    result += text.substr(copied, splice.begin - copied);
    result += splice.replacement;
    copied = splice.end;
  }
  return result += text.substr(copied);
}

bool isBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Splice removal(std::string_view text, const ElementSpan& span) {
  const auto line = lineBreakBefore(text, span.begin);
  return {line == std::string_view::npos ? span.begin : line, span.end, {}};
}

std::string indentationOf(std::string_view text, const ElementSpan& span,
                          std::string_view fallback) {
  const auto line = lineBreakBefore(text, span.begin);
  return std::string(line == std::string_view::npos ? fallback
                                                    : text.substr(line + 1, span.begin - line - 1));
}

std::string xmlDiff(std::string_view before, std::string_view after) {
  return unifiedDiff(masked(before), masked(after));
}

}  // namespace vfpass::domain
