#include "domain_edits.hpp"

#include <algorithm>
#include <array>

#include "bad_xml.hpp"
#include "edit_codec.hpp"
#include "edit_place.hpp"
#include "element_layout.hpp"
#include "our_elements.hpp"
#include "same_element.hpp"

namespace vfpass::domain {
namespace {

constexpr std::array allPlaces{
    EditPlace::memtune,         EditPlace::memoryBacking, EditPlace::cputune,
    EditPlace::numatune,        EditPlace::cpu,           EditPlace::pcieRoot,
    EditPlace::qemuCommandline, EditPlace::qemuOverride};

std::string laidOut(const std::string& element, const std::string& indentation) {
  pugi::xml_document tree;
  tree.load_buffer(element.data(), element.size());
  return elementText(tree.document_element(), indentation, pugi::format_attribute_single_quote);
}

// Each element on its own line.
std::string linesOf(const std::vector<std::string>& elements, const std::string& indentation) {
  std::string text;
  for (const std::string& element : elements) {
    text += "\n" + indentation + laidOut(element, indentation);
  }
  return text;
}

Splice insertNew(const Document& document, EditPlace place,
                 const std::vector<std::string>& elements) {
  const auto& span = document.span(neighbourOf(document, place));
  const auto indentation = indentationOf(document.text(), span, "  ");
  return {span.end, span.end,
          "\n" + indentation + startTagOf(document, place) + linesOf(elements, indentation + "  ") +
              "\n" + indentation + "</" + std::string(toString(place)) + ">"};
}

Splice insertAt(const Document& document, EditPlace place,
                const std::vector<std::string>& elements) {
  const auto node = containerAt(document, place);
  if (!node) {
    return insertNew(document, place, elements);
  }
  const auto& outer = document.span(node);
  const auto outerIndentation = indentationOf(document.text(), outer, "  ");
  const auto lines = linesOf(elements, outerIndentation + "  ");
  if (outer.selfClosing()) {
    return {outer.end - 2, outer.end,
            ">" + lines + "\n" + outerIndentation + "</" + node.name() + ">"};
  }
  const auto last = lastElement(node);
  const auto at = last ? document.span(last).end : outer.contentBegin;
  return {at, at, lines};
}

// Recorded elements, each parsed once.
class Record {
 public:
  explicit Record(const std::vector<std::string>& elements) : trees_(elements.size()) {
    for (std::size_t at = 0; at < elements.size(); ++at) {
      trees_[at].load_buffer(elements[at].data(), elements[at].size());
    }
  }

  [[nodiscard]] std::size_t size() const { return trees_.size(); }
  [[nodiscard]] pugi::xml_node operator[](std::size_t at) const {
    return trees_[at].document_element();
  }

 private:
  std::vector<pugi::xml_document> trees_;
};

// For each position the length of the longest part before it that the record also begins with.
std::vector<std::size_t> repetitionsIn(const Record& record) {
  std::vector<std::size_t> repetitions(record.size() + 1, 0);
  for (std::size_t at = 1; at < record.size(); ++at) {
    std::size_t matched = repetitions[at];
    while (matched > 0 && !sameElement(record[at], record[matched])) {
      matched = repetitions[matched];
    }
    repetitions[at + 1] = matched + (sameElement(record[at], record[matched]) ? 1 : 0);
  }
  return repetitions;
}

// The run of adjacent elements in `container` that equals the record; empty if somebody has changed
// them. Compares each element of the container twice at most (Knuth, Morris, Pratt): whoever edits
// the domain writes both lists.
std::vector<pugi::xml_node> findElements(pugi::xml_node container,
                                         const std::vector<std::string>& recorded) {
  std::vector<pugi::xml_node> children;
  std::copy_if(container.begin(), container.end(), std::back_inserter(children),
               [](pugi::xml_node child) { return child.type() == pugi::node_element; });
  if (recorded.empty() || recorded.size() > children.size()) {
    return {};
  }
  const Record record(recorded);
  const auto repetitions = repetitionsIn(record);
  std::size_t matched = 0;
  for (std::size_t at = 0; at < children.size(); ++at) {
    while (matched > 0 && !sameElement(children[at], record[matched])) {
      matched = repetitions[matched];
    }
    matched += sameElement(children[at], record[matched]) ? 1 : 0;
    if (matched == record.size()) {
      const auto end = children.begin() + static_cast<std::ptrdiff_t>(at + 1);
      return {end - static_cast<std::ptrdiff_t>(matched), end};
    }
  }
  return {};
}

// The record of one place in our metadata.
struct Recorded {
  Container container = Container::absent;
  std::vector<std::vector<std::string>> edits;
};

// Adds a <setting> of a lease; an unreadable one names no elements.
void addSetting(pugi::xml_node node, std::map<EditPlace, Recorded>& recorded) {
  try {
    DomainEdit edit = readEdit(node);
    recorded[edit.place].edits.push_back(std::move(edit.elements));
    recorded[edit.place].container = containerOf(attributeText(node, containerAttribute));
  } catch (const Error&) {
    return;
  }
}

// No more settings than a readable lease can have: each is searched for in the whole domain.
std::map<EditPlace, Recorded> readRecorded(const Document& document) {
  std::map<EditPlace, Recorded> recorded;
  std::size_t count = 0;
  for (const auto metadata : ourMetadata(document)) {
    for (const auto lease : metadata) {
      for (const auto node : lease) {
        if (isOurChild(lease, "lease") && isOurChild(node, "setting") && count++ < maxEdits) {
          addSetting(node, recorded);
        }
      }
    }
  }
  return recorded;
}

// Keyed by offset, so that an element named by two records is removed once.
using Removals = std::map<std::size_t, Splice>;

// Also removes the container if only our elements needed it.
std::vector<Splice> removeFrom(const Document& document, pugi::xml_node node, Container original,
                               const Removals& removals) {
  const auto text = document.text();
  const auto& outer = document.span(node);
  std::vector<Splice> inner;
  auto at = outer.contentBegin;
  bool alone = true;
  for (const auto& [begin, splice] : removals) {
    alone = alone && isBlank(text.substr(at, begin - at));
    at = splice.end;
    inner.push_back(splice);
  }
  alone = alone && isBlank(text.substr(at, outer.contentEnd - at));
  if (!alone || original == Container::present) {
    return inner;
  }
  return {original == Container::selfClosing ? Splice{outer.contentBegin - 1, outer.end, "/>"}
                                             : removal(text, outer)};
}

}  // namespace

std::map<EditPlace, Container> containersOf(const Document& document) {
  std::map<EditPlace, Container> containers;
  for (const EditPlace place : allPlaces) {
    const auto node = containerAt(document, place);
    containers[place] = !node                               ? Container::absent
                        : document.span(node).selfClosing() ? Container::selfClosing
                                                            : Container::present;
  }
  return containers;
}

std::vector<Splice> insertEdits(const Document& document, const std::vector<DomainEdit>& edits) {
  std::map<EditPlace, std::vector<std::string>> elements;
  for (const DomainEdit& edit : edits) {
    auto& all = elements[edit.place];
    all.insert(all.end(), edit.elements.begin(), edit.elements.end());
  }
  std::vector<Splice> splices;
  for (const auto& [place, all] : elements) {
    splices.push_back(insertAt(document, place, all));
  }
  return splices;
}

std::vector<Splice> removeEdits(const Document& document) {
  std::vector<Splice> splices;
  for (const auto& [place, recorded] : readRecorded(document)) {
    const auto node = containerAt(document, place);
    Removals removals;
    for (const auto& elements : recorded.edits) {
      for (const auto element : findElements(node, elements)) {
        const Splice splice = removal(document.text(), document.span(element));
        removals.insert({splice.begin, splice});
      }
    }
    if (!removals.empty()) {
      const auto all = removeFrom(document, node, recorded.container, removals);
      splices.insert(splices.end(), all.begin(), all.end());
    }
  }
  return splices;
}

bool carriesEdits(const Document& document, const std::vector<DomainEdit>& edits) {
  return std::all_of(edits.begin(), edits.end(), [&document](const DomainEdit& edit) {
    return !findElements(containerAt(document, edit.place), edit.elements).empty();
  });
}

}  // namespace vfpass::domain
