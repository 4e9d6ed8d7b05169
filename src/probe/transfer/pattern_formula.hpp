#pragma once

// Also included by the GPU kernels: no standard headers, and only constexpr functions, which clang
// compiles for both sides.

namespace vfpass::probe {

using Word = unsigned long long;

/// Odd constant from the golden ratio, so that neighbouring words differ in all of their bytes.
constexpr Word wordStep = 0x9e3779b97f4a7c15ULL;

/// Initial value for a seed (the finalizer of SplitMix64).
constexpr Word patternKey(Word seed) {
  Word mixed = seed + wordStep;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31U);
}

/// How a message's number changes each of its words. The lowest byte of the number affects all
/// eight bytes, so that messages less than 256 apart differ in every byte unless a higher byte of
/// the number changes as well; the first two bytes distinguish 65,536 messages, the first four all
/// 2^32.
constexpr Word messageMask(Word message) {
  return (message & 0xffULL) * 0x0101010101010101ULL ^
         (message & 0xffffff00ULL) * 0x0000000100000001ULL;
}

/// The word at `index` (8-byte units from the message's first byte, stored little-endian).
/// Different positions of one message and equal positions of different messages always differ.
constexpr Word patternWord(Word key, Word mask, Word index) {
  return (key + index * wordStep) ^ mask;
}

/// The bits that poison inverts: poison differs from the expected value in every byte, so that a
/// byte that was never written cannot look correct.
constexpr Word poisonBits = ~0ULL;

}  // namespace vfpass::probe
