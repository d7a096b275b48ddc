#include "memory.h"

#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace recurra {
namespace {

constexpr std::size_t line = 128, huge_page = std::size_t{2} << 20;
#if defined(RECURRA_SANITIZED)
// Each block as large as it was asked for, and none used twice: a sanitizer sees who goes beyond it, or comes too late.
constexpr bool is_exact = true;
#else
constexpr bool is_exact = false;
#endif
// Below, malloc keeps its memory by itself.
constexpr std::size_t smallest_kept = is_exact ? SIZE_MAX : std::size_t{64} << 10;
constexpr std::size_t most_kept = std::size_t{512} << 20;  // of all blocks together

struct Block {
  void* at;
  std::size_t bytes;
};

struct Kept {
  std::mutex mutex;
  std::vector<Block> blocks;  // oldest first
  std::size_t bytes = 0;
};

// Never destroyed: arrays may give their memory back after the end of main(). A fork waits until no thread changes it:
// the child would inherit the lock of a thread that it does not have.
Kept& kept() {
  static Kept* const all = [] {
    pthread_atfork([] { kept().mutex.lock(); }, [] { kept().mutex.unlock(); }, [] { kept().mutex.unlock(); });
    return new Kept;
  }();
  return *all;
}

// Sizes are rounded up to an eighth of their power of two, so that calls of similar sizes share blocks.
std::size_t rounded(std::size_t bytes) {
  if (is_exact) return bytes;
  std::size_t power = line;
  while (power * 2 <= bytes) power *= 2;
  const std::size_t step = power / 8 > line ? power / 8 : line;
  return (bytes + step - 1) / step * step;
}

void* fresh(std::size_t bytes) {
  const bool large = bytes >= 2 * huge_page && !is_exact;
  const std::size_t unit = large ? huge_page : line;
  void* at = nullptr;
  if (posix_memalign(&at, unit, is_exact ? bytes : (bytes + unit - 1) / unit * unit) != 0) throw std::bad_alloc();
#if defined(__linux__)
  if (large) madvise(at, bytes, MADV_HUGEPAGE);  // advice: where it is refused, small pages do as well
#endif
  return at;
}

}  // namespace

void* take_block(std::size_t bytes) {
  bytes = rounded(bytes);
  if (bytes >= smallest_kept) {
    Kept& all = kept();
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (std::size_t i = all.blocks.size(); i-- > 0;)
      if (all.blocks[i].bytes == bytes) {
        void* at = all.blocks[i].at;
        all.blocks.erase(all.blocks.begin() + static_cast<std::ptrdiff_t>(i));
        all.bytes -= bytes;
        return at;
      }
  }
  return fresh(bytes);
}

void give_block(void* block, std::size_t bytes) {
  bytes = rounded(bytes);
  if (bytes < smallest_kept || bytes > most_kept) return std::free(block);
  Kept& all = kept();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.blocks.push_back({block, bytes});
  all.bytes += bytes;
  while (all.bytes > most_kept) {
    std::free(all.blocks.front().at);
    all.bytes -= all.blocks.front().bytes;
    all.blocks.erase(all.blocks.begin());
  }
}

std::size_t kept_bytes() {
  Kept& all = kept();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.bytes;
}

void drop_kept() {
  Kept& all = kept();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const Block& block : all.blocks) std::free(block.at);
  all.blocks.clear();
  all.bytes = 0;
}

}  // namespace recurra
