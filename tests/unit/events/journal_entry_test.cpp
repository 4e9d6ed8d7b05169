#include "vfpass/events/journal_event.hpp"

#include <map>
#include <string>

namespace vfpass::events {
namespace {

using testing::ElementsAre;

using Fields = std::multimap<std::string, std::string>;

// As systemd-journald reads the form with a length.
Fields fieldsOf(const std::string& datagram) {
  Fields fields;
  for (std::size_t at = 0; at < datagram.size();) {
    const auto end = datagram.find('\n', at);
    const std::string name = datagram.substr(at, end - at);
    EXPECT_EQ(name.find('='), std::string::npos);
    std::uint64_t length = 0;
    for (unsigned byte = 0; byte < 8; ++byte) {
      length |= std::uint64_t{static_cast<unsigned char>(datagram.at(end + 1 + byte))} << 8 * byte;
    }
    fields.emplace(name, datagram.substr(end + 9, length));
    EXPECT_EQ(datagram.at(end + 9 + length), '\n');
    at = end + 10 + length;
  }
  return fields;
}

std::vector<std::string> valuesOf(const Fields& fields, const std::string& name) {
  std::vector<std::string> values;
  const auto [begin, end] = fields.equal_range(name);
  for (auto field = begin; field != end; ++field) {
    values.push_back(field->second);
  }
  return values;
}

std::string valueOf(const Fields& fields, const std::string& name) {
  const auto values = valuesOf(fields, name);
  EXPECT_EQ(values.size(), 1U) << name;
  return values.empty() ? "" : values.front();
}

Subject attachOf(const std::string& vm) {
  Subject subject;
  subject.vm = vm;
  subject.domain = parseUuid("6ba7b810-9dad-11d1-80b4-00c04fd430c8");
  return subject;
}

Lease leaseOf(const char* pf, const char* device, bool vf) {
  Lease lease;
  if (vf) {
    lease.part = LeasedVf{};
  } else {
    lease.part = LeasedFunction{};
  }
  lease.pf = parsePciAddress(pf).value();
  lease.device = parsePciAddress(device).value();
  return lease;
}

TEST(JournalEntry, HasTheFieldsOfTheEvent) {
  Subject subject = attachOf("train0");
  subject.invoker = Invoker{"alice", 1000};
  const auto fields =
      fieldsOf(eventEntry(subject, {Result::refused, "VF in use", "stop the process"}, "vfpass"));
  EXPECT_EQ(fields, (Fields{{"MESSAGE", "VF in use"},
                            {"PRIORITY", "3"},
                            {"SYSLOG_IDENTIFIER", "vfpass"},
                            {"MESSAGE_ID", "7705e599e6b74d769e34153f531d6ecd"},
                            {"VFPASS_RESULT", "refused"},
                            {"VFPASS_REMEDY", "stop the process"},
                            {"VFPASS_OPERATION", "attach"},
                            {"VFPASS_VM", "train0"},
                            {"VFPASS_VM_UUID", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
                            {"VFPASS_USER", "alice"},
                            {"VFPASS_USER_ID", "1000"}}));
}

TEST(JournalEntry, OmitsWhatIsNotKnown) {
  Subject subject;
  subject.operation = Operation::hostApply;
  const auto fields = fieldsOf(eventEntry(subject, {Result::done, "changed"}, "vfpass"));
  for (const char* name :
       {"VFPASS_VM", "VFPASS_VM_UUID", "VFPASS_REMEDY", "VFPASS_USER", "VFPASS_PF"}) {
    EXPECT_EQ(fields.count(name), 0U) << name;
  }
}

TEST(JournalEntry, NamesEachDeviceOnce) {
  Subject subject = attachOf("train0");
  subject.addDevices({leaseOf("0000:3b:00.0", "0000:3b:00.2", true),
                      leaseOf("0000:3b:00.0", "0000:3b:00.3", true),
                      leaseOf("0000:5e:00.0", "0000:5e:00.0", false)});
  const auto fields = fieldsOf(eventEntry(subject, {Result::done, "attached"}, "vfpass"));
  EXPECT_THAT(valuesOf(fields, "VFPASS_PF"), ElementsAre("0000:3b:00.0"));
  EXPECT_THAT(valuesOf(fields, "VFPASS_VF"), ElementsAre("0000:3b:00.2", "0000:3b:00.3"));
  EXPECT_THAT(valuesOf(fields, "VFPASS_FUNCTION"), ElementsAre("0000:5e:00.0"));
}

TEST(JournalEntry, NameOfADomainAddsNoField) {
  const std::string name("a\nMESSAGE_ID=0\nVFPASS_USER=root\0b\xff", 34);
  const auto fields = fieldsOf(eventEntry(attachOf(name), {Result::done, "attached"}, "vfpass"));
  EXPECT_EQ(valueOf(fields, "VFPASS_VM"), name);
  EXPECT_EQ(valueOf(fields, "MESSAGE_ID"), "1a1e18434ef5407e82a8aca528a2b8c8");
  EXPECT_EQ(fields.count("VFPASS_USER"), 0U);
}

TEST(JournalEntry, MessageHasNoTerminalCodes) {
  const auto fields =
      fieldsOf(eventEntry(attachOf("a"), {Result::done, "name \x1b[2J", "x\x07"}, "vfpass"));
  EXPECT_EQ(valueOf(fields, "MESSAGE"), "name \\x1b[2J");
  EXPECT_EQ(valueOf(fields, "VFPASS_REMEDY"), "x\\x07");
}

TEST(JournalEntry, IsShortEnoughForOneDatagram) {
  Subject subject = attachOf(std::string(std::size_t{1} << 20U, 'x'));
  for (unsigned number = 0; number < 5000; ++number) {
    PciAddress address;
    address.bus = static_cast<std::uint8_t>(number);
    subject.vfs.push_back(address);
    subject.pfs.push_back(address);
    subject.functions.push_back(address);
  }
  const auto entry = eventEntry(
      subject, {Result::done, std::string(1U << 20U, 'y'), std::string(1U << 20U, 'z')}, "vfpass");
  EXPECT_LT(entry.size(), 212992U - 4096U);
  EXPECT_EQ(valueOf(fieldsOf(entry), "VFPASS_VM").size(), 4096U);
}

TEST(JournalEntry, EventThatDoesNotExistIsEmpty) {
  Subject subject;
  subject.operation = Operation::reconnect;
  EXPECT_EQ(eventEntry(subject, {Result::done, "text"}, "vfpass"), "");
}

TEST(JournalEntry, LineHasTheSubjectButNoMessageId) {
  const Subject subject = attachOf("train0");
  const auto fields = fieldsOf(lineEntry(Priority::warning, "warning: x", &subject, "vfpass"));
  EXPECT_EQ(valueOf(fields, "PRIORITY"), "4");
  EXPECT_EQ(valueOf(fields, "VFPASS_VM"), "train0");
  EXPECT_EQ(fields.count("MESSAGE_ID"), 0U);
  EXPECT_EQ(fieldsOf(lineEntry(Priority::info, "x", nullptr, "vfpass")).size(), 3U);
}

}  // namespace
}  // namespace vfpass::events
