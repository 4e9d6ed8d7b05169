#pragma once

// Included by the GPU kernels, too: no standard headers, and constexpr functions only, which clang
// compiles for both sides.

namespace vfpass::probe {

using Word = unsigned long long;

/// The odd constant of the golden ratio: neighbouring words differ in all of their bytes.
constexpr Word wordStep = 0x9e3779b97f4a7c15ULL;

/// Where the words of one seed begin (the finalizer of SplitMix64).
constexpr Word patternKey(Word seed) {
  Word mixed = seed + wordStep;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31U);
}

/// What one message's number changes in each of its words. The lowest byte of the number is in all
/// eight bytes, so that messages which are less than 256 apart differ in every byte unless a higher
/// byte of the number changed, too; the first two bytes alone tell 65,536 messages apart, the first
/// four all of 2^32.
constexpr Word messageMask(Word message) {
  return (message & 0xffULL) * 0x0101010101010101ULL ^
         (message & 0xffffff00ULL) * 0x0000000100000001ULL;
}

/// The word at `index` (8-byte units from the message's first byte, stored little-endian).
/// Different positions of one message and equal positions of different messages always differ.
constexpr Word patternWord(Word key, Word mask, Word index) {
  return (key + index * wordStep) ^ mask;
}

/// The bits that poison turns over: poison differs from what is expected in every byte, so that a
/// byte that nobody wrote can never look right.
constexpr Word poisonBits = ~0ULL;

}  // namespace vfpass::probe
