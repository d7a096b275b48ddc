#pragma once

#include <cstddef>

// Memory for scratch and for results. Large blocks come in huge pages and are kept when they are given back: fresh
// pages cost more than the arithmetic on them (the kernel clears each at its first touch).
namespace recurra {

// At least `bytes` bytes, aligned to 128 (two lines, that are fetched as a pair); not cleared. Throws std::bad_alloc.
void* take_block(std::size_t bytes);
// `bytes` as it was asked for.
void give_block(void* block, std::size_t bytes);
// How many bytes are kept for later, and the end of that.
std::size_t kept_bytes();
void drop_kept();

}  // namespace recurra
