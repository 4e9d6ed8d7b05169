// Tests of the built program, started as libvirtd starts it.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
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
Result start(const std::string& name, const std::string& xml) {
  const std::string preload = VFPASS_HOOK_IS_STATIC == 0 ? "" : "LD_PRELOAD=/nonexistent.so ";
  const std::string command = "printf '%s' '" + xml + "' | env -i " + preload + VFPASS_HOOK + " '" +
                              name + "' prepare begin - 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  Result result;
  std::array<char, 1024> buffer{};
  for (std::size_t count = 0; (count = ::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.err.append(buffer.data(), count);
  }
  const int state = ::pclose(pipe);
  result.code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  return result;
}

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
