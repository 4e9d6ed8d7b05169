#include "vfpass/base/output_file.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "vfpass/error.hpp"

namespace vfpass {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    std::string pattern = (fs::temp_directory_path() / "vfpass-output-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~OutputFileTest() override { fs::remove_all(folder); }
  OutputFileTest(const OutputFileTest&) = delete;
  OutputFileTest& operator=(const OutputFileTest&) = delete;

  static std::string read(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }

  fs::path folder;
};

TEST_F(OutputFileTest, ReplacesTheFile) {
  writeOutputFile(folder / "page.html", "one");
  writeOutputFile(folder / "page.html", "two");
  EXPECT_EQ(read(folder / "page.html"), "two");
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(fs::status(folder / "page.html").permissions(), fs::perms{0644});
}

TEST_F(OutputFileTest, DoesNotFollowASymbolicLink) {
  std::ofstream(folder / "precious") << "kept";
  fs::create_symlink("precious", folder / "page.html");
  writeOutputFile(folder / "page.html", "page");
  EXPECT_EQ(read(folder / "precious"), "kept");
  EXPECT_FALSE(fs::is_symlink(folder / "page.html"));
}

TEST_F(OutputFileTest, MissingDirectoryIsAnError) {
  EXPECT_THROW(writeOutputFile(folder / "none" / "page.html", "page"), Error);
}

TEST_F(OutputFileTest, DirectoryIsNotReplaced) {
  fs::create_directories(folder / "page.html" / "inner");
  EXPECT_THROW(writeOutputFile(folder / "page.html", "page"), Error);
  EXPECT_EQ(files(), 1) << "no draft is left";
}

}  // namespace
}  // namespace vfpass
