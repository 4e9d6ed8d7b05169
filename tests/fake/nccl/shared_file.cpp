// Ranks of one machine exchange their data through a file in /dev/shm.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>

#include "exchange.hpp"

namespace fake_nccl {
namespace {

constexpr std::size_t slotBytes = std::size_t{16} << 20U;
constexpr std::size_t headerBytes = 4096;

/// At the beginning of the file; then a slot for each rank.
struct Header {
  std::atomic<int> joined;
  std::atomic<int> arrived;
  std::atomic<int> round;
};

void rest() { ::usleep(200); }

class SharedFile : public Exchange {
 public:
  SharedFile(std::string path, int ranks, int rank)
      : path_(std::move(path)), ranks_(ranks), rank_(rank) {}
  ~SharedFile() override {
    if (memory_ != nullptr) {
      ::munmap(memory_, bytes());
    }
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int join() override {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes())) != 0) {
      return invalidArgument;
    }
    void* mapped = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    memory_ = static_cast<char*>(mapped);
    ++header().joined;
    return success;
  }

  int waitForAll() override {
    while (header().joined < ranks_) {
      rest();
    }
    ::unlink(path_.c_str());
    return success;
  }

  [[nodiscard]] std::size_t mostBytes() const override { return slotBytes; }

  int give(const char* source, std::size_t count) override {
    std::memcpy(part(rank_), source, count);
    return success;
  }

  [[nodiscard]] char* part(int rank) const override {
    return memory_ + headerBytes + static_cast<std::size_t>(rank) * slotBytes;
  }

  int arrive() override {
    round_ = header().round;
    if (++header().arrived == ranks_) {
      header().arrived = 0;
      ++header().round;
    }
    return success;
  }

  int await() override {
    while (header().round == round_) {
      rest();
    }
    return success;
  }

  // The line that rank 0 has written with its ID.
  [[nodiscard]] std::string log() const override { return rank_ == 0 ? "" : address(); }

  static std::string address() { return "h:1:1 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>\n"; }

 private:
  [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(memory_); }
  [[nodiscard]] std::size_t bytes() const {
    return headerBytes + static_cast<std::size_t>(ranks_) * slotBytes;
  }

  std::string path_;
  int ranks_;
  int rank_;
  int round_ = 0;
  char* memory_ = nullptr;
};

}  // namespace

Meeting newMeeting() {
  std::random_device random;
  return {"/dev/shm/fake-nccl-" + std::to_string(random()) + std::to_string(random()),
          SharedFile::address()};
}

std::unique_ptr<Exchange> newExchange(const std::string& id, int ranks, int rank) {
  return std::make_unique<SharedFile>(id, ranks, rank);
}

}  // namespace fake_nccl
