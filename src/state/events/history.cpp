#include "vfpass/events/history.hpp"

#include <algorithm>

#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/events/journal_event.hpp"

namespace vfpass::events {
namespace {

using Json = nlohmann::json;

// An entry of vfpass has at most a few thousand addresses and texts of 4 KiB each.
constexpr JsonLimits entryLimits{std::size_t{1} << 20U, 4};

constexpr const char* outputFields =
    "MESSAGE,MESSAGE_ID,VFPASS_OPERATION,VFPASS_RESULT,VFPASS_VM,VFPASS_VM_UUID,VFPASS_PF,VFPASS_"
    "VF,VFPASS_FUNCTION,VFPASS_REMEDY,VFPASS_USER,VFPASS_USER_ID,_SYSTEMD_UNIT";

// Matches of the same field are alternatives, and those of different fields must all be met.
void addMatches(const std::string& own, std::vector<std::string>& command) {
  command.emplace_back("_UID=0");
  for (const Event& event : allEvents()) {
    command.push_back("MESSAGE_ID=" + std::string(event.messageId));
  }
  if (!own.empty()) {
    command.push_back(own);
  }
}

// journalctl prints bytes that are not printable UTF-8 as a list of numbers.
bool isByteList(const JsonReader& value) {
  const Json& list = value.json();
  return list.is_array() && !list.empty() &&
         std::ranges::all_of(list, [](const Json& byte) { return byte.is_number_unsigned(); });
}

std::string textOf(const JsonReader& value) {
  std::string text = value.textOr("");
  if (isByteList(value)) {
    for (const JsonReader& byte : value.listOrEmpty()) {
      text.push_back(static_cast<char>(byte.numberOr(0)));
    }
  }
  return text;
}

class EntryReader {
 public:
  explicit EntryReader(const JsonReader& entry) : entry_(entry) {}

  // A field with several values is a list of values.
  [[nodiscard]] std::vector<std::string> all(const char* field) const {
    const JsonReader value = entry_[field];
    std::vector<std::string> values;
    if (value.json().is_array() && !isByteList(value)) {
      for (const JsonReader& each : value.listOrEmpty()) {
        values.push_back(textOf(each));
      }
    } else if (!value.isMissing()) {
      values.push_back(textOf(value));
    }
    return values;
  }

  [[nodiscard]] std::string text(const char* field) const {
    const auto values = all(field);
    return values.empty() ? "" : values.front();
  }

  [[nodiscard]] std::optional<std::uint64_t> number(const char* field) const {
    return parseNumber(text(field));
  }

  [[nodiscard]] std::vector<PciAddress> addresses(const char* field) const {
    std::vector<PciAddress> found;
    for (const auto& value : all(field)) {
      if (const auto address = parsePciAddress(value)) {
        found.push_back(*address);
      }
    }
    return found;
  }

 private:
  JsonReader entry_;
};

// A login session is a scope, and says nothing that the user's name does not say.
std::string serviceOf(const std::string& unit) { return unit.ends_with(".service") ? unit : ""; }

PastOperation operationOf(const EntryReader& entry) {
  PastOperation past;
  past.time += std::chrono::microseconds(entry.number("__REALTIME_TIMESTAMP").value_or(0));
  past.messageId = entry.text("MESSAGE_ID");
  past.operation = entry.text("VFPASS_OPERATION");
  past.result = entry.text("VFPASS_RESULT");
  past.vm = entry.text("VFPASS_VM");
  past.vmUuid = entry.text("VFPASS_VM_UUID");
  past.message = entry.text("MESSAGE");
  past.remedy = entry.text("VFPASS_REMEDY");
  past.user = entry.text("VFPASS_USER");
  if (const auto id = entry.number("VFPASS_USER_ID")) {
    past.userId = static_cast<unsigned>(*id);
  }
  past.unit = serviceOf(entry.text("_SYSTEMD_UNIT"));
  past.pfs = entry.addresses("VFPASS_PF");
  past.vfs = entry.addresses("VFPASS_VF");
  past.functions = entry.addresses("VFPASS_FUNCTION");
  return past;
}

}  // namespace

std::vector<std::string> journalctlCommand(const HistoryQuery& query) {
  std::vector<std::string> command{"/usr/bin/journalctl",
                                   "--no-pager",
                                   "--all",
                                   "--output=json",
                                   std::string("--output-fields=") + outputFields,
                                   "--lines=" + std::to_string(query.limit)};
  if (!query.since.empty()) {
    command.push_back("--since=" + query.since);
  }
  if (!query.directory.empty()) {
    command.push_back("--directory=" + query.directory.string());
  }
  if (query.vm.empty()) {
    addMatches("", command);
    return command;
  }
  addMatches("VFPASS_VM=" + query.vm, command);
  command.emplace_back("+");
  addMatches("VFPASS_VM_UUID=" + toLower(query.vm), command);
  return command;
}

History readHistory(const std::string& output) {
  History history;
  for (const auto& line : splitLines(output)) {
    if (!line.starts_with('{')) {
      if (!line.empty() && line != "-- No entries --") {
        history.remarks.push_back(line);
      }
      continue;
    }
    try {
      const Json entry = parseBoundedJson(line, entryLimits);
      history.operations.push_back(operationOf(EntryReader(JsonReader(entry))));
    } catch (const JsonRefused& refused) {
      history.remarks.push_back(std::string("ignored an entry: ") + refused.what());
    }
  }
  return history;
}

}  // namespace vfpass::events
