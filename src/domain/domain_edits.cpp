#include "domain_edits.hpp"

#include <algorithm>
#include <array>

#include "device_xml.hpp"
#include "metadata.hpp"
#include "our_elements.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

constexpr const char* qemuNamespace = "http://libvirt.org/schemas/domain/qemu/1.0";

bool isQemuElement(EditPlace place) {
  return place == EditPlace::qemuCommandline || place == EditPlace::qemuOverride;
}

}  // namespace

pugi::xml_node containerAt(const Document& document, EditPlace place) {
  if (place == EditPlace::domain) {
    return document.domain();
  }
  if (place != EditPlace::pcieRoot) {
    return document.domain().child(std::string(toString(place)).c_str());
  }
  for (const auto device : document.devices()) {
    if (isPciController(device) && attributeText(device, "model") == "pcie-root") {
      return device;
    }
  }
  return {};
}

pugi::xml_node neighbourOf(const Document& document, EditPlace place) {
  if (place == EditPlace::cpu || place == EditPlace::pcieRoot) {
    throw badXml("no <" + std::string(place == EditPlace::cpu ? "cpu" : "controller") +
                 "> element for a domain setting");
  }
  if (isQemuElement(place)) {
    return lastElement(document.domain());
  }
  auto before = document.devices().previous_sibling();
  while (before && before.type() != pugi::node_element) {
    before = before.previous_sibling();
  }
  return before ? before : document.domain().child("name");
}

std::string startTagOf(const Document& document, EditPlace place) {
  const std::string name(toString(place));
  const bool declares = isQemuElement(place) && !document.domain().attribute("xmlns:qemu");
  return "<" + name + (declares ? std::string(" xmlns:qemu='") + qemuNamespace + "'" : "") + ">";
}

namespace {

constexpr std::array allPlaces{
    EditPlace::memtune,         EditPlace::memoryBacking, EditPlace::cputune,
    EditPlace::numatune,        EditPlace::cpu,           EditPlace::pcieRoot,
    EditPlace::qemuCommandline, EditPlace::qemuOverride,  EditPlace::domain};

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
  if (place == EditPlace::domain) {
    const auto& span = document.span(neighbourOf(document, place));
    return {span.end, span.end, linesOf(elements, indentationOf(document.text(), span, "  "))};
  }
  if (!node) {
    return insertNew(document, place, elements);
  }
  const auto indentation = indentationOf(document.text(), document.span(node), "  ") + "  ";
  return insertInto(document, node, linesOf(elements, indentation));
}

using Numbers = std::vector<std::size_t>;

// For each position the length of the longest part before it that the record also begins with.
Numbers repetitionsIn(const Numbers& record) {
  Numbers repetitions(record.size() + 1, 0);
  for (std::size_t at = 1; at < record.size(); ++at) {
    std::size_t matched = repetitions[at];
    while (matched > 0 && record[at] != record[matched]) {
      matched = repetitions[matched];
    }
    repetitions[at + 1] = matched + (record[at] == record[matched] ? 1 : 0);
  }
  return repetitions;
}

// The elements of a container. Whoever edits the domain writes both these and the record that is
// searched for, so each element is read once, and the search is linear (Knuth, Morris, Pratt).
class Elements {
 public:
  // Of `<domain>` only those that a setting may add: a record that names others, which anybody who
  // edits the domain can write, must not remove what another record names inside them.
  Elements(const Document& document, EditPlace place) {
    for (const auto child : containerAt(document, place)) {
      const bool may = place != EditPlace::domain || std::string_view(child.name()) == "iommufd";
      if (child.type() == pugi::node_element && may) {
        elements_.push_back(child);
        numbers_.push_back(numberOf(child));
      }
    }
  }

  // The run of adjacent elements that equals the record; empty if somebody has changed them.
  std::vector<pugi::xml_node> find(const std::vector<std::string>& recorded) {
    const Numbers record = numbersOf(recorded);
    const Numbers repetitions = repetitionsIn(record);
    std::size_t matched = 0;
    for (std::size_t at = 0; at < numbers_.size() && matched < record.size(); ++at) {
      while (matched > 0 && numbers_[at] != record[matched]) {
        matched = repetitions[matched];
      }
      matched += numbers_[at] == record[matched] ? 1 : 0;
      if (matched == record.size()) {
        const auto end = elements_.begin() + static_cast<std::ptrdiff_t>(at + 1);
        return {end - static_cast<std::ptrdiff_t>(matched), end};
      }
    }
    return {};
  }

 private:
  // The same for equal elements.
  std::size_t numberOf(pugi::xml_node element) {
    return known_.try_emplace(canonicalElement(element), known_.size()).first->second;
  }

  Numbers numbersOf(const std::vector<std::string>& recorded) {
    Numbers numbers;
    for (const std::string& element : recorded) {
      pugi::xml_document tree;
      tree.load_buffer(element.data(), element.size());
      numbers.push_back(numberOf(tree.document_element()));
    }
    return numbers;
  }

  std::vector<pugi::xml_node> elements_;
  Numbers numbers_;
  std::map<std::string, std::size_t> known_;
};

// The record of one place in our metadata.
struct Recorded {
  Container container = Container::absent;
  std::vector<std::vector<std::string>> edits;
};

// Each of the settings is searched for in the whole domain.
std::map<EditPlace, Recorded> readRecorded(const Document& document) {
  std::map<EditPlace, Recorded> recorded;
  for (const RecordedEdit& found : recordedEdits(ourMetadata(document))) {
    Recorded& place = recorded[found.edit.place];
    place.edits.push_back(found.edit.elements);
    place.container = found.container;
  }
  return recorded;
}

}  // namespace

Splice insertInto(const Document& document, pugi::xml_node container, const std::string& lines) {
  const auto& outer = document.span(container);
  if (outer.selfClosing()) {
    return {outer.end - 2, outer.end,
            ">" + lines + "\n" + indentationOf(document.text(), outer, "  ") + "</" +
                container.name() + ">"};
  }
  const auto last = lastElement(container);
  const auto at = last ? document.span(last).end : outer.contentBegin;
  return {at, at, lines};
}

std::vector<Splice> removeFrom(const Document& document, pugi::xml_node container,
                               Container original, const Removals& removals) {
  const auto text = document.text();
  const auto& outer = document.span(container);
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

namespace {

std::vector<Splice> removeAt(const Document& document, EditPlace place, const Recorded& recorded) {
  Elements present(document, place);
  Removals removals;
  for (const auto& elements : recorded.edits) {
    for (const auto element : present.find(elements)) {
      const Splice splice = removal(document.text(), document.span(element));
      removals.insert({splice.begin, splice});
    }
  }
  return removals.empty()
             ? std::vector<Splice>{}
             : removeFrom(document, containerAt(document, place), recorded.container, removals);
}

}  // namespace

std::vector<Splice> removeEdits(const Document& document) {
  std::vector<Splice> splices;
  for (const auto& [place, recorded] : readRecorded(document)) {
    const auto all = removeAt(document, place, recorded);
    splices.insert(splices.end(), all.begin(), all.end());
  }
  return splices;
}

namespace {

// Not beside elements of somebody else, which may set the same.
bool canReplace(const Document& document, EditPlace place, const Recorded& recorded) {
  Elements present(document, place);
  return recorded.edits.empty()
             ? !containerAt(document, place)
             : std::ranges::all_of(recorded.edits, [&present](const auto& elements) {
                 return !present.find(elements).empty();
               });
}

std::string replaceEditsAt(EditPlace place, const std::string& xml,
                           const std::vector<DomainEdit>& edits,
                           std::map<EditPlace, Container>& containers) {
  const Document document(xml);
  const Recorded recorded = readRecorded(document)[place];
  std::vector<std::vector<std::string>> wanted;
  std::ranges::transform(edits, std::back_inserter(wanted), &DomainEdit::elements);
  if (recorded.edits == wanted || !canReplace(document, place, recorded)) {
    return xml;
  }
  const std::string bare = applySplices(xml, removeAt(document, place, recorded));
  const Document rest(bare);
  containers[place] = containersOf(rest)[place];
  return applySplices(bare, insertEdits(rest, edits));
}

}  // namespace

std::string withHostEdits(std::string_view xml, const std::vector<DomainEdit>& edits,
                          std::map<EditPlace, Container>& containers) {
  std::string text(xml);
  for (const EditPlace place : allPlaces) {
    std::vector<DomainEdit> here;
    std::ranges::copy_if(edits, std::back_inserter(here),
                         [place](const DomainEdit& edit) { return edit.place == place; });
    if (isHostSide(place)) {
      text = replaceEditsAt(place, text, here, containers);
    }
  }
  return text;
}

bool carriesEdits(const Document& document, const std::vector<DomainEdit>& edits) {
  return std::ranges::all_of(edits, [&document](const DomainEdit& edit) {
    return !Elements(document, edit.place).find(edit.elements).empty();
  });
}

}  // namespace vfpass::domain
