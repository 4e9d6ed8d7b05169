#include "tag_reader.hpp"

#include "bad_xml.hpp"

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

}  // namespace vfpass::domain
