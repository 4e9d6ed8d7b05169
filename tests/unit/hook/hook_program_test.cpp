// Tests of the built program, started as libvirtd starts it.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace vfpass::hook {
namespace {

using testing::HasSubstr;

struct Result {
  int code = -1;
  std::string err;
};

// `name` is passed through the shell in single quotes. The environment contains an LD_PRELOAD that
// would break a dynamically linked program.
Result call(const std::string& name, const std::string& operation, const std::string& xml) {
  const std::string preload = VFPASS_HOOK_IS_STATIC == 0 ? "" : "LD_PRELOAD=/nonexistent.so ";
  const std::string input = testing::TempDir() + "hook-input-" + std::to_string(::getpid());
  std::ofstream(input) << xml;
  const std::string command =
      "env -i " + preload + VFPASS_HOOK + " '" + name + "' " + operation + " - <" + input + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  Result result;
  std::array<char, 1024> buffer{};
  for (std::size_t count = 0; (count = ::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.err.append(buffer.data(), count);
  }
  const int state = ::pclose(pipe);
  result.code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  std::filesystem::remove(input);
  return result;
}

Result start(const std::string& name, const std::string& xml) {
  return call(name, "prepare begin", xml);
}

const std::string head =
    "<domain type='kvm'><name>train0</name><uuid>6ba7b810-9dad-11d1-80b4-00c04fd430c8</uuid>";
const std::string beyondLimit(std::size_t{16} << 20U, ' ');

TEST(HookProgram, IsPositionIndependentAndStatic) {
  if (VFPASS_HOOK_IS_STATIC == 0) {
    GTEST_SKIP() << "sanitizer builds are linked dynamically";
  }
  std::ifstream stream(VFPASS_HOOK, std::ios::binary);
  Elf64_Ehdr header{};
  ASSERT_TRUE(stream.read(reinterpret_cast<char*>(&header), sizeof header));
  EXPECT_EQ(header.e_type, ET_DYN);
  for (unsigned number = 0; number < header.e_phnum; ++number) {
    Elf64_Phdr segment{};
    stream.seekg(static_cast<std::streamoff>(header.e_phoff + number * sizeof segment));
    ASSERT_TRUE(stream.read(reinterpret_cast<char*>(&segment), sizeof segment));
    EXPECT_NE(segment.p_type, static_cast<unsigned>(PT_INTERP)) << "LD_PRELOAD would affect it";
  }
}

TEST(HookProgram, LetsUnmanagedDomainsStart) {
  const Result result = start("train0", "<domain><name>train0</name></domain>");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(HookProgram, LetsUnmanagedDomainsOfAnySizeStart) {
  const Result result = start("train0", head + beyondLimit + "</domain>");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(HookProgram, RefusesToStartManagedDomainThatItCannotRead) {
  const Result result = start(
      "train0", head + beyondLimit + "<x xmlns='https://vfpass.org/xmlns/domain/1'/></domain>");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("larger than 16 MiB; remove large elements"));
}

// What it prints, libvirt would take for the domain's XML.
TEST(HookProgram, PrintsNothingForUnmanagedDomainsThatArrive) {
  for (const std::string operation : {"restore begin", "migrate begin"}) {
    const Result result = call("train0", operation, head + "</domain>");
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
  }
}

const std::string unreadable = head +
                               "<metadata><v:domain xmlns:v='https://vfpass.org/xmlns/domain/1' "
                               "version='999'/></metadata><devices/></domain>";

TEST(HookProgram, RefusesManagedDomainsThatArriveUnreadable) {
  const Result result = call("train0", "migrate begin", unreadable);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot read its vfpass metadata"));
}

// libvirt 11.3 deletes the saved image if `restore` fails.
TEST(HookProgram, RefusesTheStartAndNotTheRestoreOfASavedImage) {
  const Result filtered = call("train0", "restore begin", unreadable);
  EXPECT_EQ(filtered.code, 0);
  const Result result = start("train0", filtered.err);  // with standard output
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("vfpass: domain train0 cannot be restored: cannot read its "
                                    "vfpass metadata"));
  EXPECT_THAT(result.err, HasSubstr("run `virsh managedsave-remove train0`"));
}

TEST(HookProgram, NeverFailsInRestore) {
  for (const std::string& xml :
       {std::string(), head + "<metadata", head + "<x xmlns='https://vfpass.org/xmlns/domain/1'>",
        head + beyondLimit + "<x xmlns='https://vfpass.org/xmlns/domain/1'/></domain>"}) {
    EXPECT_EQ(call("train0", "restore begin", xml).code, 0);
    EXPECT_EQ(start("train0", xml).code, xml == head + "<metadata" ? 0 : 1) << "it would start";
  }
}

// virHookCall passes nothing if libvirt cannot print the domain.
TEST(HookProgram, RefusesStartWithoutXml) {
  const Result result = start("train0", "");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("libvirt passed no domain XML"));
}

TEST(HookProgram, ReleaseNeedsOnlyTheUuid) {
  for (const std::string& rest :
       {std::string("<metadata><cut off"), beyondLimit + "</domain>", std::string("</other>")}) {
    const Result result = call("train0", "release end", head + rest);
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
  }
  const Result unknown = call("train0", "release end", "<domain><name>train0</name>");
  EXPECT_EQ(unknown.code, 0) << "libvirt ignores it";
  EXPECT_THAT(unknown.err, HasSubstr("no domain XML with a UUID; run `vfpass recover`"));
}

TEST(HookProgram, WritesOneLineWithoutControlCharacters) {
  const std::string namespaceOfOurs = "https://vfpass.org/xmlns/domain/1";
  for (const std::string& name :
       {std::string("train0"), std::string("a\x1b]0;owned\x07\nvfpass: b")}) {
    for (const std::string& xml :
         {"<domain xmlns:v=\"" + namespaceOfOurs + "\"",
          "<domain><name>" + name +
              "</name><uuid>6ba7b810-9dad-11d1-80b4-00c04fd430c8</uuid><metadata><v:domain "
              "xmlns:v=\"" +
              namespaceOfOurs +
              "\"><v:\xc2\x9b"
              "1m/></v:domain></metadata></domain>"}) {
      const Result result = start(name, xml);
      EXPECT_EQ(result.code, 1);
      EXPECT_THAT(result.err, HasSubstr("vfpass: "));
      EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
      EXPECT_EQ(std::ranges::count_if(
                    result.err,
                    [](char c) {
                      return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f;
                    }),
                0)
          << result.err;
    }
  }
}

}  // namespace
}  // namespace vfpass::hook
