// The GPU's half of the check: the memory's owner writes and reads it with its own threads.
//
// Compiled by clang alone, without the CUDA toolkit (regenerate.sh), into kernels.ptx, which is kept in the
// tree and loaded through libcuda: PTX ISA 6.3 for sm_60, which every driver since R418 translates for its
// GPU. It therefore uses no standard header, and builtins for the special registers.

#include "../transfer/pattern_formula.hpp"

using namespace vfpass::probe;

#define KERNEL extern "C" __attribute__((global)) __attribute__((launch_bounds(256)))
#define DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define GLOBAL __attribute__((address_space(1)))

namespace {

typedef Word WordPair __attribute__((ext_vector_type(2)));
using Bytes = GLOBAL unsigned char*;
using Pairs = GLOBAL WordPair*;

constexpr Word pairBytes = sizeof(WordPair);
/// Vectors of 16 bytes that a thread has in flight at once. On an H200 the check reaches 0.81 of memset's
/// bandwidth with 2, 0.96 with 4 and 1.00 with 8.
constexpr int unrolled = 8;
constexpr Word blockThreads = 256;
/// Vectors that a block handles in one step.
constexpr Word tilePairs = blockThreads * unrolled;

/// One message, divided where 16-byte vectors can begin and end.
struct Message {
  Bytes bytes;
  Word size;
  Word head;   ///< bytes before the first whole vector
  Word pairs;  ///< whole vectors
  Word key;
  Word mask;
};

/// The two pattern words of vector `pair`. A message's alignment shifts all its vectors equally.
DEVICE WordPair expectedPair(const Message& message, Word pair) {
  const Word offset = message.head + pair * pairBytes;
  const Word index = offset >> 3U;
  const unsigned shift = static_cast<unsigned>(message.head & 7U) * 8U;
  WordPair words;
  words.x = patternWord(message.key, message.mask, index);
  words.y = patternWord(message.key, message.mask, index + 1);
  if (shift != 0) {
    const Word third = patternWord(message.key, message.mask, index + 2);
    words.x = words.x >> shift | words.y << (64U - shift);
    words.y = words.y >> shift | third << (64U - shift);
  }
  return words;
}

DEVICE unsigned char expectedByte(const Message& message, Word offset) {
  const Word word = patternWord(message.key, message.mask, offset >> 3U);
  return static_cast<unsigned char>(word >> ((offset & 7U) * 8U));
}

/// Slot `slot` of the range that begins at `base`.
DEVICE Message messageOf(Word base, Word stride, Word size, Word firstMessage, Word slot, Word key,
                         Word inversion) {
  Message message;
  const Word address = base + slot * stride;
  const Word toVector = (pairBytes - (address & (pairBytes - 1))) & (pairBytes - 1);
  message.bytes = reinterpret_cast<Bytes>(address);
  message.size = size;
  message.head = toVector < size ? toVector : size;
  message.pairs = (size - message.head) / pairBytes;
  message.key = key;
  message.mask = messageMask(firstMessage + slot) ^ inversion;
  return message;
}

DEVICE Word thread() { return static_cast<Word>(__nvvm_read_ptx_sreg_tid_x()); }

/// The tiles of a message are distributed over the blocks in x. One thread's position in its block's first
/// tile, and the distance to the next.
DEVICE Word firstPair() {
  return static_cast<Word>(__nvvm_read_ptx_sreg_ctaid_x()) * tilePairs + thread();
}
DEVICE Word pairStep() { return static_cast<Word>(__nvvm_read_ptx_sreg_nctaid_x()) * tilePairs; }

/// Offset of this thread's byte before or after the vectors, or `size` if it has none: there are at most 30
/// such bytes.
DEVICE Word edgeByte(const Message& message) {
  const Word number = thread();
  if (number < message.head) {
    return number;
  }
  const Word behind = message.head + message.pairs * pairBytes + (number - message.head);
  return behind < message.size ? behind : message.size;
}

/// `results` has two words for each slot: the smallest offset and the count.
DEVICE void reportWrong(Word results, Word slot, Word offset, Word count) {
  __nvvm_atom_min_gen_ull(reinterpret_cast<Word*>(results) + 2 * slot, offset);
  __nvvm_atom_add_gen_ll(reinterpret_cast<long long*>(results) + 2 * slot + 1,
                         static_cast<long long>(count));
}

/// A word whose bytes are 1 where those of `word` are not zero.
DEVICE Word byteMarks(Word word) {
  word |= word >> 4U;
  word |= word >> 2U;
  word |= word >> 1U;
  return word & 0x0101010101010101ULL;
}

/// Reports one vector that is known to be wrong.
DEVICE void reportPair(Word results, Word slot, Word offset, WordPair differing) {
  const Word low = byteMarks(differing.x);
  const Word high = byteMarks(differing.y);
  const int bits = low != 0 ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high);
  const int count = __builtin_popcountll(low) + __builtin_popcountll(high);
  reportWrong(results, slot, offset + static_cast<Word>(bits / 8), static_cast<Word>(count));
}

/// Checks a tile vector by vector: the message's last one, which is incomplete, and those with errors.
DEVICE void checkTile(const Message& message, Pairs pairs, Word first, Word results, Word slot) {
#pragma unroll 1
  for (Word pair = first; pair < message.pairs && pair < first + tilePairs; pair += blockThreads) {
    const WordPair differing = pairs[pair] ^ expectedPair(message, pair);
    if ((differing.x | differing.y) != 0) {
      reportPair(results, slot, message.head + pair * pairBytes, differing);
    }
  }
}

/// Whether this thread's part of a whole tile is correct. All loads come first, because many outstanding
/// loads hide the memory's latency.
DEVICE bool tileIsRight(const Message& message, Pairs pairs, Word first) {
  WordPair seen[unrolled];
#pragma unroll
  for (int i = 0; i < unrolled; ++i) {
    seen[i] = pairs[first + static_cast<Word>(i) * blockThreads];
  }
  WordPair differing = {0, 0};
#pragma unroll
  for (int i = 0; i < unrolled; ++i) {
    differing |= seen[i] ^ expectedPair(message, first + static_cast<Word>(i) * blockThreads);
  }
  return (differing.x | differing.y) == 0;
}

}  // namespace

/// Writes the pattern, with the bits of `inversion` inverted (0: the pattern, ~0: poison), into `slots`
/// messages. Blocks in x share a message, blocks in y share the slots.
KERNEL void vfpassFill(Word base, Word stride, Word size, Word slots, Word firstMessage, Word key,
                       Word inversion) {
  for (Word slot = __nvvm_read_ptx_sreg_ctaid_y(); slot < slots;
       slot += static_cast<Word>(__nvvm_read_ptx_sreg_nctaid_y())) {
    const Message message = messageOf(base, stride, size, firstMessage, slot, key, inversion);
    const Pairs pairs = reinterpret_cast<Pairs>(message.bytes + message.head);
    for (Word first = firstPair(); first < message.pairs; first += pairStep()) {
#pragma unroll
      for (int i = 0; i < unrolled; ++i) {
        const Word pair = first + static_cast<Word>(i) * blockThreads;
        if (pair < message.pairs) {
          pairs[pair] = expectedPair(message, pair);
        }
      }
    }
    const Word edge = edgeByte(message);
    if (firstPair() < blockThreads && edge < message.size) {
      message.bytes[edge] = expectedByte(message, edge);
    }
  }
}

/// Compares `slots` messages with the pattern. For each slot, `results` receives the offset of its first
/// wrong byte (initially all ones) and the number of wrong bytes (initially 0).
KERNEL void vfpassCheck(Word base, Word stride, Word size, Word slots, Word firstMessage, Word key,
                        Word results) {
  for (Word slot = __nvvm_read_ptx_sreg_ctaid_y(); slot < slots;
       slot += static_cast<Word>(__nvvm_read_ptx_sreg_nctaid_y())) {
    const Message message = messageOf(base, stride, size, firstMessage, slot, key, 0);
    const Pairs pairs = reinterpret_cast<Pairs>(message.bytes + message.head);
    for (Word first = firstPair(); first < message.pairs; first += pairStep()) {
      const bool whole = first - thread() + tilePairs <= message.pairs;
      if (!whole || !tileIsRight(message, pairs, first)) {
        checkTile(message, pairs, first, results, slot);
      }
    }
    const Word edge = edgeByte(message);
    if (firstPair() < blockThreads && edge < message.size &&
        message.bytes[edge] != expectedByte(message, edge)) {
      reportWrong(results, slot, edge, 1);
    }
  }
}
